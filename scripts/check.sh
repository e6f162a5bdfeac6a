#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/check.sh [--headers]
# Checks the sources without running the program: format, layers, budgets, words and more. Runs all checks
# even if one fails. Needs clang-format, python3, git and g++. Changes nothing. --headers also compiles each public
# header alone, which takes minutes.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/usage.sh
usage_on_request scripts/check.sh "$@"

headers=false
for option; do
    if [[ $option != --headers ]]; then
        echo "check.sh: unknown option '$option'; the only option is --headers" >&2
        exit 2
    fi
    headers=true
done

failed=()
check() {
    local name=$1
    shift
    if "$@"; then echo "ok      $name"; else
        echo "FAILED  $name"
        failed+=("$name")
    fi
}

sources() {
    local trees=() tree
    for tree in include src tests kernels; do [[ ! -d $tree ]] || trees+=("$tree"); done
    find "${trees[@]}" -name '*.[ch]pp' -o -name '*.cu' -o -name '*.cuh'
}

formatted() { sources | xargs -P "$(nproc)" -n 8 clang-format --dry-run --Werror; }

licensed() {
    local unlicensed
    unlicensed=$({
        sources
        find scripts .ci -type f -name '*.sh' -o -type f -name '*.py' -o -path .ci/run
    } | while read -r file; do
        head -n 2 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' || echo "$file"
    done)
    [[ -z $unlicensed ]] || { echo "no SPDX line: $unlicensed" && return 1; }
}

has_no_todo() { ! sources | xargs grep -nE '\b(TODO|FIXME|XXX)\b'; }

# A mutant that does not apply is outdated, because its formula has changed.
mutants_apply() {
    local patch failed=0
    for patch in tests/mutants/*.patch; do git apply --check "$patch" || failed=1; done
    return $failed
}

scripts_parse() { find scripts .ci -name '*.sh' -o -path .ci/run | xargs -n 1 bash -n; }

# Compiles each public header alone.
compile_header() {
    g++ -std=c++20 -Iinclude -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -fsyntax-only \
        -x c++ - <<<"#include \"${1#include/}\"" || { echo "$1 does not compile alone" && return 1; }
}
export -f compile_header
self_contained() { find include -name '*.hpp' | xargs -P "$(nproc)" -I{} bash -c 'compile_header {}'; }

check "format (clang-format)" formatted
check "layers (docs/layers.txt)" python3 scripts/check_layers.py
check "budgets (lengths, parameters, #if)" python3 scripts/check_budget.py
check "words (scripts/words.txt)" python3 scripts/check_words.py
check "documents (links, table cells, README.md)" python3 scripts/check_documents.py
check "tests/verification_rows.md (rows, tests)" python3 scripts/verification.py --check
for test in tests/scripts/*_test.py; do check "$test" python3 "$test" --quiet; done
check "mutants apply (tests/mutants)" mutants_apply
check "license lines" licensed
check "no TODO comments" has_no_todo
check "scripts parse" scripts_parse
! $headers || check "headers are self-contained" self_contained

if ((${#failed[@]})); then
    printf 'check.sh: %s failed\n' "${failed[@]}" >&2
    exit 1
fi
