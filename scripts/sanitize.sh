#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/sanitize.sh thread | address [TEST...]
# thread: builds the modules that use threads with ThreadSanitizer in build/thread-sanitize, and runs their
# unit tests and then the program as one rank. address: builds the unit tests with AddressSanitizer and
# UndefinedBehaviorSanitizer in build/debug-sanitize and runs them. TEST is a test such as meters or,
# for thread, program (default: all). Prints a line per test; the output of failed tests is in
# build/<kind>/sanitized. Exit code: 0 nothing found, 1 a finding, 2 usage.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/usage.sh
usage_on_request scripts/sanitize.sh "$@"

case ${1:-} in
    thread)
        build=build/thread-sanitize
        tests=(base storage meters evaluation comm data training program)
        ;;
    address)
        build=build/debug-sanitize
        tests=()
        for folder in tests/*/; do
            folder=$(basename "$folder")
            grep -q "^$folder:" docs/layers.txt || continue
            ! compgen -G "tests/$folder/*_test.cpp" >/dev/null || tests+=("$folder")
        done
        ;;
    *)
        echo "sanitize.sh: expected thread or address, got '${1:-}'" >&2
        exit 2
        ;;
esac
(($# < 2)) || tests=("${@:2}")

targets=("${tests[@]/%/_test}")
targets=("${targets[@]/program_test/hpcai500}")
scripts/build.sh "$(basename $build)" "${targets[@]}"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
if [[ $1 == thread ]]; then
    # ThreadSanitizer does not know the barriers of libgomp and would report each of its threads.
    export OMP_NUM_THREADS=1 GTEST_FILTER='-*_2_threads*:*_3_threads*'
fi
# The injected faults of training_test must end it by a signal.
export TSAN_OPTIONS=second_deadlock_stack=1:exitcode=66:handle_segv=0:allocator_may_return_null=1
export ASAN_OPTIONS=handle_segv=0:allocator_may_return_null=1
found=$PWD/$build/sanitized
mkdir -p "$found"
failed=0
for test in "${tests[@]}"; do
    code=0
    if [[ $test == program ]]; then
        rm -rf "$found/result"
        "$build/hpcai500" run --config configs/smoke.yaml --set bagging.M=1 --set run.output="$found/result" \
            --set run.checkpoint_steps=2 --set data.decode_threads=2 >"$found/$test.log" 2>&1 || code=$?
    else
        ctest --test-dir $build -R "^$test\$" --verbose >"$found/$test.log" 2>&1 || code=$?
    fi
    reports=$(grep -cE 'WARNING: ThreadSanitizer|ERROR: (Address|Leak)Sanitizer|runtime error:' "$found/$test.log") || true
    passed=$(sed -n 's/.*\[  PASSED  \] \([0-9]* tests\?\).*/\1/p' "$found/$test.log" | tail -n 1)
    printf '%-14s exit code %d  %d reports  %s\n' "$test" $code "$reports" "$passed"
    ((code == 0 && reports == 0)) || failed=1
done
exit $failed
