#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/test.sh [--all] [--sanitize]
# Builds everything, runs the tests and the checks of the sources. Without options: the unit tests,
# MPI tests at 1, 2 and 4 ranks, and a few complete runs.
#   --all       every test: all complete runs, more numbers of ranks, ResNet-50 against PyTorch,
#               jobs under Slurm if it is installed; also compiles every file of the program and every header alone
#   --sanitize  also the unit tests of the modules that read data and configuration from outside, and
#               the corpora of the fuzz targets, with AddressSanitizer and UndefinedBehaviorSanitizer
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/usage.sh
usage_on_request scripts/test.sh "$@"

all=false
sanitize=false
for option; do
    case $option in
        --all) all=true ;;
        --sanitize) sanitize=true ;;
        *)
            echo "test.sh: unknown option '$option'; the options are --all and --sanitize" >&2
            exit 2
            ;;
    esac
done

phase() { printf '\n== %s (%d min %02d s since the start)\n' "$1" $((SECONDS / 60)) $((SECONDS % 60)); }

# Prints, from a ctest log, a command for each test whose program was killed.
commands_of_killed() {
    awk '/^Command: / { sub(/^Command: /, ""); command = $0 }
         /^\[ RUN      \] / { name = $4 }
         /\[ *(OK|FAILED|SKIPPED) *\] / || /^\[==========\] .* ran\./ { name = "" }
         /^Test time = / && name != "" { print "  " command " --gtest_filter=\x27" name "\x27  # killed"; name = "" }' "$1"
}

# run_ctest FOLDER OPTION...; ends with the commands that run the tests that failed.
run_ctest() {
    local folder=$1 logs=$1/Testing/Temporary
    shift
    export GTEST_COLOR=no # the log is searched
    rm -f "$logs/LastTest.log" "$logs/LastTestsFailed.log"
    ctest --test-dir "$folder" --output-on-failure --no-tests=error --parallel "$(nproc)" "$@" && return
    [[ -f $logs/LastTestsFailed.log ]] || exit 1
    echo
    echo "test.sh: to run each failed test alone:"
    sed -n '/^To run each failed test alone:$/,/^[^ ]*$/ { /^  /p }' "$logs/LastTest.log"
    commands_of_killed "$logs/LastTest.log"
    sed "s|.*:|  ctest --test-dir $folder --output-on-failure -R '^|; s|\$|\$'|" "$logs/LastTestsFailed.log"
    exit 1
}

phase "Build"
scripts/build.sh release
phase "Tests"
if $all; then
    run_ctest build/release --label-exclude '^e2e-smoke$' # its tests are among those of e2e
else
    run_ctest build/release --label-regex '^(unit|mpi|e2e-smoke)$'
fi
if $sanitize; then
    modules=(base storage meters config search data evaluation report slurm)
    tests=()
    for module in "${modules[@]}"; do
        ! compgen -G "tests/$module/*_test.cpp" >/dev/null || tests+=("${module}_test")
    done
    phase "Build with sanitizers"
    scripts/build.sh debug-sanitize "${tests[@]}"
    phase "Tests with sanitizers"
    run_ctest build/debug-sanitize --tests-regex "^($(IFS='|' && echo "${modules[*]}"))\$"
    phase "Corpora of the fuzz targets"
    scripts/fuzz.sh 0
fi
if $all; then
    phase "Build from separate files"
    scripts/build.sh develop hpcai500
    phase "Checks of the sources"
    scripts/check.sh --headers
else
    phase "Checks of the sources"
    scripts/check.sh
fi
phase "All tests and checks passed"
