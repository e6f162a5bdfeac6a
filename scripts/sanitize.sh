#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/sanitize.sh thread | address [TEST...]
# thread: with ThreadSanitizer, builds the modules that use threads in build/thread-sanitize, and runs their
# unit tests, the MPI tests on 2 and 4 ranks, and the program on 1, 2 and 4 ranks. address: builds the
# unit tests with AddressSanitizer and UndefinedBehaviorSanitizer in build/debug-sanitize and runs them.
# TEST is a test such as meters or, for thread, mpi_2_ranks or program_4_ranks (default: all). Prints a
# line per test; the output is in build/<kind>/sanitized. Exit code: 0 nothing found, 1 a finding, 2 usage.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/usage.sh
source scripts/mpi_environment.sh
usage_on_request scripts/sanitize.sh "$@"

case ${1:-} in
    thread)
        build=build/thread-sanitize
        tests=(base storage meters evaluation comm data training mpi_2_ranks mpi_4_ranks
            program_1_ranks program_2_ranks program_4_ranks)
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
targets=("${targets[@]/program_*_test/hpcai500}")
targets=("${targets[@]/mpi_*_test/mpi_test}")
scripts/build.sh "$(basename $build)" "${targets[@]}"

mpi_environment 4 >/dev/null
if [[ $1 == thread ]]; then
    # ThreadSanitizer does not know the barriers of libgomp and would report each of its threads. At -O1,
    # rounding errors exceed the tolerances of LearnsAsOneRankLearns.
    export OMP_NUM_THREADS=1 GTEST_FILTER='-*_2_threads*:*_3_threads*:*.LearnsAsOneRankLearns*'
fi
export GTEST_COLOR=no
# The injected faults of training_test must end it by a signal.
export TSAN_OPTIONS=second_deadlock_stack=1:exitcode=66:handle_segv=0:allocator_may_return_null=1
TSAN_OPTIONS+=:suppressions=$PWD/scripts/thread_sanitizer.supp
export ASAN_OPTIONS=handle_segv=0:allocator_may_return_null=1
found=$PWD/$build/sanitized
mkdir -p "$found"
failed=0
for test in "${tests[@]}"; do
    code=0
    ranks=${test//[^0-9]/}
    case $test in
        mpi_[0-9]*_ranks) command=(mpirun --tag-output --bind-to none -np "$ranks" "$build/mpi_test") ;;
        program_[0-9]*_ranks)
            models=$(((ranks + 1) / 2))
            rm -rf "$found/result"
            command=(mpirun --tag-output --bind-to none -np "$ranks" "$build/hpcai500" run --config configs/smoke.yaml
                --set bagging.M=$models --set bagging.P_degree=$((ranks / models)) --set workload.backbone_width=8
                --set run.checkpoint_steps=2 --set data.decode_threads=2 --set run.output="$found/result")
            ;;
        *) command=(ctest --test-dir "$build" -R "^$test\$" --verbose) ;;
    esac
    "${command[@]}" >"$found/$test.log" 2>&1 || code=$?
    reports=$(grep -cE 'WARNING: ThreadSanitizer|ERROR: (Address|Leak)Sanitizer|runtime error:' "$found/$test.log") || true
    passed=$(sed -n 's/.*\[  PASSED  \] \([0-9]* tests\?\).*/\1/p' "$found/$test.log" | tail -n 1)
    printf '%-15s exit code %d  %d reports  %s\n' "$test" $code "$reports" "$passed"
    ((code == 0 && reports == 0)) || failed=1
done
exit $failed
