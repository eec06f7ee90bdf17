#!/usr/bin/env bash
# Rollcall at work, on real voices: a server with an empty store, three people enrolled, and a conversation of theirs and
# of a stranger streamed into it by a real client, faster than it was spoken. `make demo` runs it after set-up.
# Exit status 0 only when everybody was recognised, the stranger was named nobody, and the server stopped cleanly.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

home=${ROLLCALL_HOME:-$PWD/.rollcall}
export ROLLCALL_HOME=$home
voices=$home/voices
data=$home/demo
rollcall=target/release/rollcall
# Two minutes pass in a quarter of one, and a laptop's workers still keep up.
speed=8
# What a cold machine needs to load the model, with room to spare.
start_max_seconds=60

stop() {
    echo "demo: $*" >&2
    exit 1
}

[ -x "$rollcall" ] && [ -d "$voices" ] || stop "something is missing; \`make demo\` sets it up and runs this"

# A fresh store each time, so that the demo always shows the same.
rm -rf "$data"
mkdir -p "$data"

"$rollcall" serve --listen 127.0.0.1:0 --data "$data" >"$data/out" 2>"$data/log" &
server=$!
trap 'kill -KILL "$server" 2>/dev/null || true' EXIT

url=
for _ in $(seq $((start_max_seconds * 10))); do
    url=$(sed -n 's/^listening on //p' "$data/out")
    [ -n "$url" ] && break
    kill -0 "$server" 2>/dev/null || stop "the server ended at once: $(tail -n 3 "$data/log")"
    sleep 0.1
done
[ -n "$url" ] || stop "the server was not ready after $start_max_seconds s; its log is $data/log"
echo "Open the console to watch: $url"
echo "The server's metrics are at $url/metrics, its log is ${data#"$PWD"/}/log."

owner=--owner
for person in allison june carlo; do
    echo "Enrolling $person${owner:+, who owns the account}."
    "$rollcall" enroll --person "$person" --name "${person^}" $owner --server "$url" "$voices/people/$person"/*.wav >>"$data/enrolled"
    owner=
done

play() {
    echo "Streaming a conversation of two minutes, $speed times as fast as it was spoken."
    echo
    "$rollcall" stream "$voices/conversation.wav" --segments "$voices/conversation.rttm" --server "$url" --speed "$speed" |
        tee "$data/events.jsonl" |
        python3 scripts/recognised.py "$voices" "$url" "$speed"
}

play
# Whoever sits at a terminal wants to look around in the console; a script wants the end.
while [ -t 0 ]; do
    echo
    echo "The console is still at $url. Enter stops the server; p and Enter plays the conversation again."
    read -r again || break
    [ "$again" = p ] || break
    play
done

kill -TERM "$server"
status=0
wait "$server" || status=$?
trap - EXIT
[ "$status" = 0 ] || stop "the server ended with status $status; its log is $data/log"

echo
echo "The server has stopped cleanly. To keep one: $rollcall serve --data ${data#"$PWD"/}"
echo
cat "$voices/ATTRIBUTION"
