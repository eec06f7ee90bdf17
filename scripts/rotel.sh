#!/usr/bin/env bash
# Installs a real OpenTelemetry collector for the tests into .rollcall/rotel. Without it they leave that test out.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly rotel=0.0.1a15
work="${ROLLCALL_HOME:-.rollcall}"
[ -x "$work/rotel/bin/python" ] || python3 -m venv "$work/rotel"
"$work/rotel/bin/pip" install --quiet --disable-pip-version-check --only-binary=:all: "rotel==$rotel"
agent="$(find "$work/rotel" -name rotel-agent -type f)"
ln -sf "$(realpath "$agent")" "$work/rotel/agent"
echo "rotel is at $work/rotel/agent"
