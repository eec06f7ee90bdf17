#!/usr/bin/env bash
# The demo's real voices: telephone prompts that Debian packages in wide-band audio, spoken by four people. They are
# fetched and never committed; .rollcall/voices then holds
#   people/ID/*.wav       clips to enrol, one folder a person
#   conversation.wav      other utterances of theirs and of a stranger, always the same
#   conversation.rttm     its segments under anonymous labels; conversation.truth.rttm under real ids
#   ATTRIBUTION           whose voices these are and under which licences; COPYRIGHT is the packages' own full statement
# Usage: voices.sh [--ready], which only says by its exit status whether they are there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

home=${ROLLCALL_HOME:-$PWD/.rollcall}
voices=$home/voices
packages=(asterisk-core-sounds-{en,fr,it,ru}-g722)
# Changes when the recipe does, so that a new recipe is cooked anew.
recipe=$(cat scripts/voices.sh scripts/voices.py | sha256sum | cut -d ' ' -f 1)

[ "$(cat "$voices/RECIPE" 2>/dev/null)" = "$recipe" ] && exit 0
[ "${1:-}" = --ready ] && exit 1

echo "voices: fetching ${packages[*]}" >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
scripts/deb-unpack.sh "$work/packages" "${packages[@]}"

# The decoder lives as long as this script.
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check --only-binary=:all: G722==1.2.8

echo "voices: choosing clips and composing the conversation" >&2
"$work/venv/bin/python" scripts/voices.py "$work/packages/usr/share/asterisk/sounds" "$work/voices"
cp "$work/packages/usr/share/doc/${packages[0]}/copyright" "$work/voices/COPYRIGHT"
echo "$recipe" >"$work/voices/RECIPE"
mkdir -p "$home"
rm -rf "$voices"
mv "$work/voices" "$voices"
