//! A real Chromium for the console's tests, driven over the WebDriver protocol.
//!
//! Each browser is a chromedriver of its own with a fresh profile, and goes with its handle. How it is asked is
//! [`driver`]'s, what a person does with a page [`page`]'s, and what every page must keep to [`checks`]'s. Every wait has an
//! end.

mod checks;
mod driver;
mod page;

use std::path::Path;

use serde_json::{Value, json};

use crate::directory::Directory;
use driver::Driver;

pub use page::{Element, key};

/// See the module's text.
pub struct Browser {
    driver: Driver,
    _profile: Directory,
}

/// What a browser is started for.
#[derive(Debug, Default, Clone, Copy)]
pub struct Wish<'a> {
    /// A WAV file that its microphone hears, in an endless loop.
    pub microphone: Option<&'a Path>,
}

/// Nothing but the page itself may use the network, and a container has neither a sandbox nor a GPU.
const FLAGS: [&str; 10] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1440,1000",
];

impl Browser {
    /// A browser, or `None` with a message where there is none: `make setup` installs it.
    ///
    /// # Panics
    /// When it is there and does not start; and where continuous integration asks for it and it is not there.
    #[must_use]
    pub fn start(wish: Wish<'_>) -> Option<Self> {
        let profile = Directory::new();
        let Some(driver) = Driver::start(&capabilities(&profile, wish)) else {
            assert!(std::env::var_os("CI").is_none(), "Chromium is missing; `make setup` installs it");
            eprintln!("skipped: there is no chromium and chromedriver here; `make setup` installs them");
            return None;
        };
        Some(Self { driver, _profile: profile })
    }

    /// Opens an address.
    pub fn open(&self, url: &str) {
        self.driver.post("url", &json!({"url": url}));
    }

    /// What a script returns; `arguments` is what it gets.
    #[must_use]
    pub fn script(&self, script: &str, arguments: &[Value]) -> Value {
        self.driver.post("execute/sync", &json!({"script": script, "args": arguments}))
    }

    /// What a script hands to the function that is its last argument.
    #[must_use]
    pub fn script_later(&self, script: &str) -> Value {
        self.driver.post("execute/async", &json!({"script": script, "args": []}))
    }

    /// The screen of a phone or of a desktop, in CSS pixels.
    pub fn resize(&self, width: u32, height: u32) {
        let screen = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", &screen);
    }

    /// What the user prefers: `dark` or `light`.
    pub fn prefer(&self, scheme: &str) {
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.devtools("Emulation.setEmulatedMedia", &media);
    }

    /// Everything that the page wrote to its console, policy violations among it, since the last time.
    #[must_use]
    pub fn console(&self) -> Vec<String> {
        self.log("browser").iter().filter_map(|entry| entry["message"].as_str().map(str::to_owned)).collect()
    }

    /// The address of every request since the last time, but for those of the browser's own pages.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        let messages = self.log("performance");
        let parsed = messages.iter().filter_map(|entry| serde_json::from_str::<Value>(entry["message"].as_str()?).ok());
        let sent = parsed.filter(|event| event["message"]["method"] == "Network.requestWillBeSent");
        let params = sent.map(|event| event["message"]["params"].clone());
        let of_pages =
            params.filter(|sent| !sent["documentURL"].as_str().is_some_and(|page| page.starts_with("chrome:")));
        of_pages.filter_map(|sent| sent["request"]["url"].as_str().map(str::to_owned)).collect()
    }

    fn log(&self, kind: &str) -> Vec<Value> {
        let entries = self.driver.post("se/log", &json!({"type": kind}));
        entries.as_array().expect("a log is a list").clone()
    }

    fn devtools(&self, command: &str, parameters: &Value) {
        self.driver.post("goog/cdp/execute", &json!({"cmd": command, "params": parameters}));
    }
}

fn capabilities(profile: &Directory, wish: Wish<'_>) -> Value {
    let mut flags: Vec<String> = FLAGS.iter().map(|flag| (*flag).to_owned()).collect();
    flags.push(format!("--user-data-dir={}", profile.path().display()));
    if let Some(sound) = wish.microphone {
        flags.push("--use-fake-device-for-media-stream".to_owned());
        flags.push("--use-fake-ui-for-media-stream".to_owned());
        flags.push(format!("--use-file-for-fake-audio-capture={}", sound.display()));
    }
    json!({"capabilities": {"alwaysMatch": {
        "browserName": "chrome",
        "goog:chromeOptions": {"args": flags},
        "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        "timeouts": {"script": 25_000, "pageLoad": 25_000, "implicit": 0},
    }}})
}
