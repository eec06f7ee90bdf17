#!/usr/bin/env bash
# The matcher's core depends on error types alone: no async, no clock, no log, no metric can slip in unseen. The list is
# what it may name; anything else in its dependency tree fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

allowed='matcher-core thiserror thiserror-impl proc-macro2 quote syn unicode-ident'

# Taken first and looped over second: a tree that cannot be made must stop the script.
tree=$(cargo tree --locked --package matcher-core --edges normal --prefix none --no-dedupe | cut -d ' ' -f 1 | sort -u)
strangers=$(comm -23 <(echo "$tree") <(tr ' ' '\n' <<<"$allowed" | sort))
if [ -n "$strangers" ]; then
    echo "matcher-core may not depend on ${strangers//$'\n'/, }" >&2
    echo "it may know $allowed, and nobody else (scripts/core-knows-nobody.sh)" >&2
    exit 1
fi
