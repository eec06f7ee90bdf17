#!/usr/bin/env bash
# Proves the dashboard, the rules and their tests. What is committed is what the source writes, the rules fire and stay silent as
# their tests say, the dashboard is as a reviewer wants it; and, where a Prometheus and a built Rollcall are at hand, every query returns data.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
export PYTHONDONTWRITEBYTECODE=1

home=${ROLLCALL_HOME:-$PWD/../.rollcall}
target=${CARGO_TARGET_DIR:-$PWD/../target}
# The whole of it takes half a minute.
live_max_seconds=180
# Grafana's types of a dashboard, as its own Python package has them: of version 10.1.
types_release='1769699998!10.1.0'
types=$home/grafana

stop() {
    echo "dashboards: $*" >&2
    exit 1
}

# The first of its arguments that can be run.
first_of() {
    local candidate
    for candidate in "$@"; do
        if [ -n "$candidate" ] && command -v "$candidate" >/dev/null; then
            echo "$candidate"
            return
        fi
    done
}

# Fetches Grafana's types, a third of a megabyte, where they are not there yet.
have_types() {
    [ "$(cat "$types/release" 2>/dev/null)" = "$types_release" ] && return
    local work
    work=$(mktemp -d)
    if python3 -m venv "$work/venv" >/dev/null 2>&1 && "$work/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps \
        --only-binary=:all: --target "$work/types" "grafana-foundation-sdk==$types_release" >/dev/null 2>&1; then
        rm -rf "$types"
        mkdir -p "$home"
        mv "$work/types" "$types"
        echo "$types_release" >"$types/release"
    fi
    rm -r "$work"
    [ -f "$types/release" ]
}

written=$(mktemp -d)
trap 'rm -r "$written"' EXIT
./generate.py "$written"
for file in rollcall.json rules.yml rules_test.yml rules_hours_test.yml; do
    diff -u "$file" "$written/$file" >&2 || stop "$file is not what its source writes; run dashboards/generate.py"
done

./lint.py || stop "mend what is named above"
if have_types; then
    PYTHONPATH=$types ./schema.py || stop "mend what is named above"
else
    echo "dashboards: SKIPPED reading the dashboard with Grafana's types; grafana-foundation-sdk could not be fetched" >&2
fi

promtool=$(first_of "${PROMTOOL:-}" "$home/bin/promtool" promtool)
[ -n "$promtool" ] || stop "there is no promtool; \`make setup\` fetches it, or PROMTOOL names one"
"$promtool" check rules rules.yml
"$promtool" check config prometheus.yml
"$promtool" test rules rules_test.yml rules_hours_test.yml
./mutants.py "$promtool" || stop "a rule may be broken without a test that fails; add the case to source/cases.py"

prometheus=$(first_of "${PROMETHEUS:-}" "$home/bin/prometheus" prometheus)
rollcall=$(first_of "${ROLLCALL:-}" "$target/debug/rollcall" "$target/release/rollcall")
missing=
[ -n "$prometheus" ] || missing="prometheus (PROMETHEUS names one)"
[ -n "$rollcall" ] || missing="${missing:+$missing, }built rollcall (ROLLCALL names one)"
if [ -n "$missing" ]; then
    echo "dashboards: SKIPPED asking a real Prometheus; there is no $missing" >&2
    exit 0
fi
timeout "$live_max_seconds" ./live.py "$prometheus" "$rollcall" || stop "a query or a rule does not work against a real server"
echo "dashboards: every query returns data from a real server"
