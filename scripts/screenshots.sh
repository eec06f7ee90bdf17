#!/usr/bin/env bash
# Pictures of the console for the README: a server with an empty store, the demo's people and conversation, and a real
# browser at desktop and phone width. Usage: screenshots.sh; writes docs/images/console-*.png.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

home=${ROLLCALL_HOME:-$PWD/.rollcall}
export ROLLCALL_HOME=$home
voices=$home/voices
rollcall=${ROLLCALL_BINARY:-target/release/rollcall}
# Fast enough not to bore, slow enough that the pictures show people being named.
speed=3
# By then everybody has spoken, and the last voices are being decided.
play_seconds=21

stop() {
    echo "screenshots: $*" >&2
    exit 1
}

[ -x "$rollcall" ] && [ -d "$voices" ] || stop "something is missing; \`make demo\` sets it up"
command -v chromedriver >/dev/null || stop "chromium-driver is missing; \`make setup\` installs it"

work=$(mktemp -d)
server=
stream=
finish() {
    for process in $stream $server; do kill "$process" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT

# The page takes Inter where it is installed, as many a desktop has it; here it is fetched for the pictures alone.
if [ ! -d "$home/fonts" ]; then
    scripts/deb-unpack.sh "$work/unpacked" fonts-inter
    # Complete or not at all, so that a run that was cut off is no obstacle to the next.
    mkdir -p "$home/fonts.part"
    mv "$work"/unpacked/usr/share/fonts/opentype/inter/*.otf "$home/fonts.part/"
    mv "$home/fonts.part" "$home/fonts"
fi
cat >"$work/fonts.conf" <<FONTS
<?xml version="1.0"?>
<fontconfig><dir>/usr/share/fonts</dir><dir>$home/fonts</dir><cachedir>$work/fonts-cache</cachedir></fontconfig>
FONTS

"$rollcall" serve --listen 127.0.0.1:0 --data "$work/data" >"$work/out" 2>"$work/log" &
server=$!
url=
for _ in $(seq 600); do
    url=$(sed -n 's/^listening on //p' "$work/out")
    [ -n "$url" ] && break
    kill -0 "$server" 2>/dev/null || stop "the server ended at once: $(tail -n 3 "$work/log")"
    sleep 0.1
done
[ -n "$url" ] || stop "the server was not ready in time"

owner=--owner
for person in allison june carlo; do
    "$rollcall" enroll --person "$person" --name "${person^}" $owner --server "$url" "$voices/people/$person"/*.wav >/dev/null
    owner=
done
"$rollcall" stream "$voices/conversation.wav" --segments "$voices/conversation.rttm" --server "$url" --speed "$speed" \
    --conversation tuesday-standup --recording meeting-room >/dev/null &
stream=$!
sleep "$play_seconds"

mkdir -p docs/images
FONTCONFIG_FILE=$work/fonts.conf python3 scripts/screenshots.py "$url" docs/images
ls -l docs/images
