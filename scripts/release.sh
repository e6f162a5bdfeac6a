#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/release.sh OUT
# Writes the last commit as hpcai500-VERSION.tar.gz, and its SHA-256 as hpcai500-VERSION.tar.gz.sha256, into the
# folder OUT. A commit always gives the same archive with the same git and gzip. Rejects uncommitted
# changes, and a version that differs between CMakeLists.txt, CITATION.cff and docs/CHANGELOG.md.
set -euo pipefail
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
source "$root/scripts/usage.sh"
usage_on_request "${BASH_SOURCE[0]}" "$@"

refuse() {
    echo "release.sh: $2" >&2
    exit "$1"
}

# Prints the first version that follows the pattern $2 in the file $1.
version_in() {
    sed -nE "s/.*$2([0-9]+\.[0-9]+\.[0-9]+).*/\1/p" "$root/$1" | sed -n 1p
}

[[ $# == 1 && -n $1 ]] || refuse 2 "expected one folder OUT, got $# arguments"
out=$(realpath -m "$1")
changes=$(git -C "$root" status --porcelain)
[[ -z $changes ]] || refuse 1 "expected a clone without changes, got"$'\n'"$changes"
version=$(version_in CMakeLists.txt '^project\(hpcai500 VERSION ')
[[ -n $version ]] || refuse 1 "CMakeLists.txt: expected project(hpcai500 VERSION X.Y.Z, got no version"
for place in "CITATION.cff:^version: " "docs/CHANGELOG.md:^## "; do
    found=$(version_in "${place%%:*}" "${place#*:}")
    [[ $found == "$version" ]] || refuse 1 \
        "${place%%:*}: expected version $version as in CMakeLists.txt, got '$found'"
done

name=hpcai500-$version
mkdir -p "$out"
work=$(mktemp -d "$out/release.XXXXXX")
trap 'rm -rf "$work"' EXIT
git -C "$root" archive --format=tar --prefix="$name/" HEAD | gzip -n -9 >"$work/$name.tar.gz"
(cd "$work" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
chmod 644 "$work"/*
mv "$work"/* "$out"
cat "$out/$name.tar.gz.sha256"
