#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/faults.sh [--only N[,N...]] [--markdown] [--program FILE]
# Builds a program that injects faults (-DHPCAI500_FAULTS=ON) in build/faults, runs the numbered tests
# of docs/RELIABILITY.md on the CPU and prints a line for each: the fault, the outcome, the seconds to
# detect the fault, and what is lost. Tests that are gtest cases are skipped without the test programs
# of build/release.
#   --only N        only these tests, by their numbers, 1 to 21
#   --markdown      prints the outcomes as a Markdown table
#   --program FILE  a program built with faults, instead of building one
# Keeps and prints the folder with the files of failed tests. Exit code: 0 all tests passed, 1 one
# failed, 2 usage.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/usage.sh
usage_on_request scripts/faults.sh "$@"
source scripts/mpi_environment.sh

usage_error() {
    echo "faults.sh: $1" >&2
    exit 2
}

only="" options=() program=""
while (($#)); do
    case $1 in
        --markdown) options+=(--markdown) ;;
        --only | --program)
            (($# >= 2)) || usage_error "$1 needs a value"
            if [[ $1 == --only ]]; then only=$2; else program=$(realpath -m "$2"); fi
            shift
            ;;
        *) usage_error "unknown option '$1'; --help lists all" ;;
    esac
    shift
done
for number in ${only//,/ }; do
    [[ $number =~ ^([1-9]|1[0-9]|2[01])$ ]] || usage_error "--only: expected numbers from 1 to 21, got '$only'"
done

if [[ -z $program ]]; then
    build=build/faults
    program=$PWD/$build/hpcai500
    mkdir -p build
    cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release -DHPCAI500_FAULTS=ON \
        -DHPCAI500_TESTS=OFF -DHPCAI500_CUDA=OFF >$build.log 2>&1 || { cat $build.log >&2 && exit 2; }
    cmake --build $build --parallel "${JOBS:-$(nproc)}" --target hpcai500 >>$build.log 2>&1 ||
        { tail -n 40 $build.log >&2 && exit 2; }
fi
[[ -f $program && -x $program ]] || usage_error "$program does not exist"
"$program" --version | grep -q ' with faults$' ||
    usage_error "$program injects no faults; build it with -DHPCAI500_FAULTS=ON"
mpi_environment 8 >/dev/null
exec python3 scripts/faults/run.py "$program" "$only" "${options[@]}"
