#!/usr/bin/env bash
# Measures on real speech whom Rollcall names and whom it refuses, and prints the table of the README (Markdown). The same
# binary, model and recordings give the same table, on any machine.
# Usage: [ROLLCALL_EXTRACTION__MODEL=NAME] accuracy.sh [SPEECH]
# Always heard are the demo's own voices. SPEECH is a folder with more of them (clips/, conversations/, manifest.json);
# without one, ../shared/speech is taken when it is there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

home=${ROLLCALL_HOME:-$PWD/.rollcall}
export ROLLCALL_HOME=$home
scripts/setup.sh release

speech=${1:-../shared/speech}
if [ ! -f "$speech/manifest.json" ]; then
    [ $# = 0 ] || { echo "accuracy: $speech has no manifest.json" >&2; exit 2; }
    echo "accuracy: no $speech here; the demo's voices alone are heard" >&2
    speech=
fi
exec python3 scripts/accuracy.py target/release/rollcall "$home/voices" ${speech:+"$speech"}
