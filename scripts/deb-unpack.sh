#!/usr/bin/env bash
# Fetches Debian packages and unpacks them into a folder, without installing them: neither root nor their dependencies
# are needed. Usage: deb-unpack.sh FOLDER PACKAGE…
set -euo pipefail

folder=${1:?usage: deb-unpack.sh FOLDER PACKAGE…}
shift
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
downloads=$(mktemp -d)
trap 'rm -rf "$downloads"' EXIT
cd "$downloads"

# As root, apt would hand the download to a user who may not write here, and warn about it.
apt-get download -qq -o APT::Sandbox::User=root "$@"
for package in *.deb; do
    dpkg-deb -x "$package" "$folder"
done
