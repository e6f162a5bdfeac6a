#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/packaging/make_man_pages.sh PROGRAM OUT
# Writes the manual pages hpcai500.1 and hpcai500-COMMAND.1 for each command from the texts of --help
# into the folder OUT, which is created if absent. Needs help2man. `cmake --install` runs this script.
set -euo pipefail
root=$(dirname "${BASH_SOURCE[0]}")/../..
source "$root/scripts/usage.sh"
usage_on_request "${BASH_SOURCE[0]}" "$@"
[[ $# == 2 ]] || { echo "make_man_pages.sh: expected PROGRAM OUT, got $# arguments" >&2 && exit 2; }
program=$(realpath "$1") out=$2
version=$("$program" --version | sed -n 1p)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

page() { # words of a command
    local help summary name command
    help=$("$program" "$@" --help)
    summary=$(sed '/^Usage:/,$d' <<<"$help" | paste -sd ' ')
    name=$(IFS=- && echo "hpcai500${*:+-$*}")
    # A program for help2man; empty lines keep the examples apart.
    cat >"$work/$name" <<END
#!/bin/sh
if [ "\$1" = --version ]; then echo "$name ${version#* }"; else
    "$program" $* --help | sed '/^Examples:/,\$ { /^  .*[^\\\\]\$/G }'
fi
END
    chmod +x "$work/$name"
    help2man --no-info --name="$summary" --output="$out/$name.1" "$work/$name"
    for command in $(awk '/^Examples:/ { exit } on && /^  [a-z]/ { print $1 } /^Subcommands:/ { on = 1 }' \
        <<<"$help"); do
        page "$@" "$command"
    done
}

page
