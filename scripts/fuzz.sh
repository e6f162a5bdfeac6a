#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/fuzz.sh [(SECONDS | RUNSx) [TARGET...]]
# Builds the fuzz targets of tests/fuzz with AddressSanitizer and UndefinedBehaviorSanitizer in
# build/fuzz, and runs each for SECONDS (60) or on RUNS inputs (such as 10000x). These are mutations of
# the files in tests/fuzz/corpus. TARGET is a target such as npy (default: all). Before that, the script
# checks that each file of the corpus is read, or rejected if its name begins with "refused"; SECONDS 0
# does only this check. Prints for each target the executions and findings, which are in
# build/fuzz/found/TARGET. Uses libFuzzer with clang++, else tests/fuzz/driver.cpp.
# FUZZ_SEED is the random seed (1). Exit code: 0 nothing found, 1 a finding, 2 usage.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/usage.sh
usage_on_request scripts/fuzz.sh "$@"

seconds=${1:-60}
[[ $seconds =~ ^[0-9]+x?$ ]] || {
    echo "fuzz.sh: expected a number of seconds, or a number of inputs such as 10000x, got '$seconds'" >&2
    exit 2
}
length=-max_total_time=$seconds
case $seconds in
    0) length=-runs=0 ;;
    *x) length=-runs=${seconds%x} ;;
esac
targets=("${@:2}")
if ((!${#targets[@]})); then
    for source in tests/fuzz/*_fuzz.cpp; do targets+=("$(basename "$source" _fuzz.cpp)"); done
fi
for target in "${targets[@]}"; do
    [[ -f tests/fuzz/${target}_fuzz.cpp ]] || {
        echo "fuzz.sh: unknown target: tests/fuzz/${target}_fuzz.cpp does not exist" >&2
        exit 2
    }
done

compiler=g++
! command -v clang++ >/dev/null || compiler=clang++
build=build/fuzz
cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER=$compiler \
    "-DCMAKE_CXX_FLAGS_DEBUG=-O1" -DHPCAI500_FUZZ=ON -DHPCAI500_CUDA=OFF -DHPCAI500_WERROR=OFF \
    >$build.log 2>&1 || { cat $build.log >&2 && exit 2; }
cmake --build $build --parallel "${JOBS:-$(nproc)}" --target "${targets[@]/%/_fuzz}" "${targets[@]/%/_corpus}" >>$build.log 2>&1 ||
    { tail -n 40 $build.log >&2 && exit 2; }

# The readers reject excessive sizes before they allocate memory, and handle failed allocations.
# Therefore a failed allocation is not a finding. The quarantine is small because climate_file forks for
# every input, which is slow with much unreleased memory.
export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1:quarantine_size_mb=16
export LSAN_OPTIONS=suppressions=$PWD/tests/fuzz/leaks.txt:print_suppressions=0
options=("$length" -seed="${FUZZ_SEED:-1}" -timeout=20 -rss_limit_mb=4096
    -max_len=65536)
failed=0
printf '%-18s %12s  %s\n' target executions found
for target in "${targets[@]}"; do
    work=$build/corpus/$target found=$build/found/$target
    rm -rf "$work" "$found"
    mkdir -p "$work" "$found"
    code=0
    "$build/${target}_corpus" -runs=0 -timeout=20 "tests/fuzz/corpus/$target" >"$found.log" 2>&1 || code=$?
    ((code)) || "$build/${target}_fuzz" "${options[@]}" -artifact_prefix="$found/" "$work" \
        "tests/fuzz/corpus/$target" >"$found.log" 2>&1 || code=$?
    runs=$(sed -n 's/^Done \([0-9]*\) runs in .*/\1/p' "$found.log")
    if ((code == 0)) && [[ -n $runs ]]; then
        result=nothing
    else
        failed=1
        runs=${runs:-$(sed -n 's/^#\([0-9]*\).*/\1/p' "$found.log" | tail -n 1)}
        result="exit code $code: $(grep -m 1 -E 'ERROR|SUMMARY|what\(\)|runtime error' "$found.log" ||
            tail -n 1 "$found.log")"
    fi
    printf '%-18s %12s  %s\n' "$target" "${runs:-?}" "$result"
done
exit $failed
