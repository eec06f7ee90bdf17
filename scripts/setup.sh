#!/usr/bin/env bash
# Installs what this machine lacks, and says nothing about what it has. Runs in seconds when nothing is missing.
# Usage: setup.sh dev|release, the profile of the binary that installs the model.
# Everything goes into .rollcall but the few Debian packages, which are installed only where a trial shows them missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

profile=${1:?usage: setup.sh dev|release}
home=${ROLLCALL_HOME:-$PWD/.rollcall}
export ROLLCALL_HOME=$home
# The release of axe-playwright-python; 0.1.8 carries axe-core 4.12.1.
axe=0.1.8
# One of these per run at most: a package list from an hour ago is good enough, none at all is not.
apt_updated=

say() { echo "setup: $*" >&2; }

stop() {
    say "$*"
    exit 1
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        command -v sudo >/dev/null || stop "this needs root, and there is no sudo; run it as root: $*"
        sudo "$@"
    fi
}

apt_update_once() {
    command -v apt-get >/dev/null || stop "this machine has no apt-get; install by hand: $*"
    [ -n "$apt_updated" ] && return
    say "refreshing the package lists"
    as_root apt-get update -qq
    apt_updated=yes
}

# What is tried is the ability and not the package: a compiler from elsewhere is as good.
can_link() {
    local trial
    trial=$(mktemp -d)
    echo 'int main(void) { return 0; }' >"$trial/a.c"
    gcc -o "$trial/a" "$trial/a.c" 2>/dev/null && "$trial/a"
    local answer=$?
    rm -r "$trial"
    return "$answer"
}

can_make_venvs() { python3 -c 'import venv, ensurepip' 2>/dev/null; }

install_packages() {
    local missing=()
    can_link || missing+=(gcc libc6-dev)
    can_make_venvs || missing+=(python3 python3-venv)
    [ ${#missing[@]} = 0 ] && return
    apt_update_once "${missing[@]}"
    say "installing ${missing[*]}"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

may_install() { command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }; }

# The console is tested in a real browser. A machine that may not install one still builds and runs everything else.
install_browser() {
    [ "$profile" = dev ] || return 0
    command -v chromium >/dev/null && command -v chromedriver >/dev/null && return
    if ! may_install; then
        say "the console's tests will be skipped: there is no chromium and chromedriver, and nothing here may install them;"
        say "to have them, run as root: apt-get install chromium chromium-driver"
        return
    fi
    apt_update_once chromium chromium-driver
    say "installing chromium and chromium-driver"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium chromium-driver >/dev/null ||
        say "the console's tests will be skipped: chromium and chromium-driver could not be installed"
}

# axe-core checks the console's accessibility. Its Python package carries the one file that is needed.
install_axe() {
    [ "$profile" = dev ] || return 0
    [ -f "$home/axe/$axe" ] && return
    say "fetching axe-core"
    local work
    work=$(mktemp -d)
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary=:all: "axe-playwright-python==$axe"
    mkdir -p "$home/axe"
    mv "$work"/venv/lib/python3*/site-packages/axe_playwright_python/axe.min.js "$home/axe/axe.min.js"
    touch "$home/axe/$axe"
    rm -r "$work"
}

# The package pulls in what a whole server needs; the two programs inside need none of it, so they are taken out.
install_prometheus() {
    [ "$profile" = dev ] || return 0
    [ -x "$home/bin/promtool" ] && [ -x "$home/bin/prometheus" ] && return
    apt_update_once "Prometheus and its promtool, into $home/bin"
    say "fetching Prometheus"
    scripts/deb-unpack.sh "$home/unpacked" prometheus
    mkdir -p "$home/bin"
    mv "$home/unpacked/usr/bin/promtool" "$home/unpacked/usr/bin/prometheus" "$home/bin/"
    rm -r "$home/unpacked"
}

install_model() {
    local flags=(--quiet --locked --package gateway)
    [ "$profile" = release ] && flags+=(--release)
    [ -x "target/$([ "$profile" = release ] && echo release || echo debug)/rollcall" ] ||
        say "building Rollcall ($profile); the first time takes minutes"
    cargo build "${flags[@]}"
    # Its progress is on standard error; where the parts lie is of no interest here.
    cargo run "${flags[@]}" -- model install campplus >/dev/null
}

install_voices() {
    scripts/voices.sh --ready && return
    apt_update_once "the voices of scripts/voices.sh"
    scripts/voices.sh
}

# A Triton, an embedding service and a collector, which the tests ask as users would. Their tests are left out without them.
install_servers() {
    [ "$profile" = dev ] || return 0
    scripts/servers.sh >/dev/null || say "the tests against a real Triton and a real embedding service will be left out"
    [ -x "$home/rotel/agent" ] && return
    say "fetching a collector"
    scripts/rotel.sh >/dev/null || say "the test against a real collector will be left out"
}

mkdir -p "$home"
install_packages
install_browser
install_axe
install_prometheus
install_servers
install_model
install_voices
