#!/usr/bin/env bash
# Installs what `rollcall bench extract` and `rollcall bench frontend` compare Rollcall with, into a Python of their own.
# Nothing of it is needed to build, test or run Rollcall. A machine that cannot fetch them measures Rollcall alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

home=${ROLLCALL_HOME:-$PWD/.rollcall}
peers=$home/peers
# What the published figures were measured with; the runtime is the one that `rollcall model install` fetches.
packages=(sherpa-onnx==2.0.1 onnxruntime==1.32.0 kaldi-native-fbank==1.23.0 librosa numpy)

if [ "$(cat "$peers/installed" 2>/dev/null)" = "${packages[*]}" ]; then
    exit 0
fi
rm -rf "$peers"
python3 -m venv "$peers" || {
    echo "peers: this needs python3 with venv; on Debian: apt-get install python3-venv" >&2
    exit 1
}
echo "peers: fetching ${packages[*]}" >&2
"$peers/bin/pip" install --quiet --disable-pip-version-check "${packages[@]}"
echo "${packages[*]}" >"$peers/installed"
