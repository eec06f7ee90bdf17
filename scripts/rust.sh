#!/usr/bin/env bash
# Says in one line what is wrong with this machine's Rust, if anything. Rust is the one thing that is not installed for
# the user: which toolchain a machine has is its owner's choice.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
mend="install Rust $needed or newer (rustup's stable toolchain will do) and run make again"

if ! version=$(cargo --version 2>/dev/null); then
    echo "Rollcall is built with Rust, and no working \`cargo\` is on the PATH: $mend." >&2
    exit 1
fi
found=$(cut -d ' ' -f 2 <<<"$version")
oldest=$(printf '%s\n%s\n' "$needed" "${found%%-*}" | sort -V | head -n 1)
if [ "$oldest" != "$needed" ]; then
    echo "Rollcall needs Rust $needed, and this machine has $found: $mend." >&2
    exit 1
fi
