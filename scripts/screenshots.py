"""Takes the console's pictures with a real browser, over the WebDriver protocol.

Usage: screenshots.py URL FOLDER. The server at URL must be showing a live conversation.
"""

import base64
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--font-render-hinting=none",
]

# What each picture shows: name, width, height, colours, and a script to run before.
PICTURES = [
    ("console-desktop", 1360, 1010, "light", ""),
    ("console-dark", 1360, 1010, "dark", ""),
    ("console-phone", 390, 844, "light", "document.getElementById('main').scrollIntoView(); scrollBy(0, -100)"),
    ("console-explain", 1360, 1010, "light", "document.querySelector('[data-tone=nobody] .voice-actions button').click()"),
]

# A README that is read over a mobile connection should not wait for its pictures.
BYTES_MAX = 200_000


class Browser:
    def __init__(self, profile):
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
        started = (re.search(r"successfully on port (\d+)", line) for line in self.driver.stdout)
        self.root = f"http://127.0.0.1:{next(filter(None, started))[1]}"
        options = {"args": [*FLAGS, f"--user-data-dir={profile}"]}
        wanted = {"capabilities": {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options}}}
        self.root += "/session/" + self.ask("/session", wanted)["sessionId"]

    def ask(self, path, body, method="POST"):
        data = json.dumps(body).encode() if method == "POST" else None
        request = urllib.request.Request(self.root + path, data, {"content-type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)["value"]

    def devtools(self, command, **parameters):
        return self.ask("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def open(self, url):
        self.ask("/url", {"url": url})

    def show(self, width, height, colours):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": colours}])

    def run(self, script):
        return self.ask("/execute/sync", {"script": script, "args": []})

    def picture(self):
        return base64.b64decode(self.devtools("Page.captureScreenshot", format="png")["data"])

    def close(self):
        self.ask("", None, "DELETE")
        self.driver.terminate()
        self.driver.wait()


def main(url, folder):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(profile)
        try:
            for name, width, height, colours, script in PICTURES:
                browser.show(width, height, colours)
                browser.open(url)
                time.sleep(1.5)
                browser.run(script)
                time.sleep(0.7)
                picture = browser.picture()
                if len(picture) > BYTES_MAX:
                    sys.exit(f"{name}: {len(picture)} bytes, at most {BYTES_MAX}")
                (pathlib.Path(folder) / f"{name}.png").write_bytes(picture)
        finally:
            browser.close()


main(*sys.argv[1:])
