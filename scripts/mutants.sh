#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/mutants.sh [NAME...]
# Checks that tests detect wrong formulas. Every tests/mutants/*.patch whose name contains a NAME
# (default: all) is applied to a copy of the working tree in build/mutants and built, and the tests in
# its header are run. Prints which tests failed. Fails if a mutant survives, exceeds the time limit, or
# no longer applies or compiles.
# "NOT RUN HERE" means that this machine skips the tests, such as tests of int8 on a processor without
# int8 instructions. A patch begins with
#     # description of the error
#     # run: PROGRAM GTEST_FILTER        (one or more lines; MPI tests run on four ranks)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/usage.sh
usage_on_request scripts/mutants.sh "$@"

root=$PWD
source=$root/build/mutants/source
build=$root/build/mutants/build
log=$root/build/mutants/log
export GTEST_COLOR=no # the log is searched
export CCACHE_BASEDIR=$root/build/mutants GIT_CEILING_DIRECTORIES=$root/build
source scripts/mpi_environment.sh
mpi_environment 4 >/dev/null

# Leaves unchanged files untouched, so that later builds are short.
copy_sources() {
    mkdir -p "$source"
    git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
        [[ -f $file ]] || continue
        cmp -s "$file" "$source/$file" || install -D "$file" "$source/$file"
    done
    (cd "$source" && find . -type f -printf '%P\0') | while IFS= read -r -d '' file; do
        [[ -f $file ]] || rm "$source/$file"
    done
}

runs_of() { sed -n 's/^# run: //p' "$@" | sort -u; }

build_programs() { runs_of "$@" | cut -d' ' -f1 | sort -u | xargs nice ninja -C "$build" >"$log" 2>&1; }

# Runs the tests of a line "PROGRAM FILTER"; their output goes to the log.
run_tests() {
    local program filter launcher=()
    read -r program filter <<<"$1"
    if [[ $program == mpi_test || $program == nccl_on_cpu_test ]]; then
        launcher=(env OMP_NUM_THREADS=1 mpirun --bind-to none -n 4)
    fi
    timeout 300 "${launcher[@]}" "$build/$program" --gtest_brief=1 --gtest_filter="$filter" \
        >>"$log" 2>&1
}

# Prints the first two tests that fail with the patch; nothing if all pass.
failing_tests_of() {
    local run code
    : >"$log"
    while read -r run; do
        code=0
        run_tests "$run" </dev/null || code=$?
        ((code == 0)) && continue
        ((code != 124)) || { echo "TOO SLOW" && return; }  # a timeout does not prove detection
        sed -nE 's/^\[  FAILED  \] ([A-Za-z0-9_/]*\.[A-Za-z0-9_]+).*/\1/p' "$log" | awk '!seen[$0]++' |
            head -n 2 | paste -sd, | sed 's/,/, /' | grep . || echo "exit code $code of ${run%% *}"
        return
    done < <(runs_of "$1")
    grep -qE '^\[  PASSED  \] [1-9]' "$log" || ! grep -qE '^\[  SKIPPED \] [1-9]' "$log" ||
        echo "NOT RUN HERE"
}

# Prints the result of a patch; returns false if no test failed.
test_mutant() {
    local patch=$1 failing_tests
    if ! git -C "$source" apply "$patch" 2>"$log"; then
        echo "DOES NOT APPLY"
        return 1
    fi
    if ! build_programs "$patch"; then
        grep -m 1 -E 'error|FAILED' "$log" >&2
        failing_tests="DOES NOT COMPILE"
    else
        failing_tests=$(failing_tests_of "$patch")
    fi
    git -C "$source" apply -R "$patch"
    echo "${failing_tests:-SURVIVES}"
    [[ -n $failing_tests && $failing_tests != "DOES NOT COMPILE" && $failing_tests != "TOO SLOW" ]]
}

patches=()
for patch in "$root"/tests/mutants/*.patch; do
    (($# == 0)) && patches+=("$patch")
    for name in "$@"; do [[ $(basename "$patch") != *"$name"* ]] || patches+=("$patch"); done
done
((${#patches[@]})) || { echo "mutants.sh: no name of a mutant contains '$*'" >&2 && exit 2; }

copy_sources
cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release >/dev/null
build_programs "${patches[@]}" || { tail -n 20 "$log" && exit 1; }
while read -r run; do
    : >"$log"
    run_tests "$run" </dev/null || { tail -n 20 "$log" && echo "$run fails without a mutant" && exit 1; }
done < <(runs_of "${patches[@]}")
echo "Built and passed without a mutant after $SECONDS s."

survivors=0
not_run=0
for patch in "${patches[@]}"; do
    result=$(test_mutant "$patch") || survivors=$((survivors + 1))
    printf '%-34s %s\n' "$(basename "$patch" .patch)" "$result"
    [[ $result != "NOT RUN HERE" ]] || not_run=$((not_run + 1))
done
echo "${#patches[@]} mutants, $survivors not detected, $not_run not run here, $SECONDS s."
((survivors == 0))
