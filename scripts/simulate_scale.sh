#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/simulate_scale.sh [--ranks A..B] [--group P] [--machine NAME] [--parts NAMES]
#        [--algorithms NAMES] [--backward T] [--seconds S] [--build FOLDER]
# Simulates a launch on A (64), 4 A, 16 A, ... up to B (1024) ranks in groups of P (8), with SimGrid's
# SMPI (Debian package libsimgrid-dev), in at most S seconds (600) for each part of NAMES:
#   start   start-up, split into groups, agreement of the groups' leaders
#   step    all-reduces of 25.6 M gradients and of BatchNorm statistics, an exchange of a layer's
#           activations (tensor parallelism), a pipeline of P stages and 16 micro-batches with
#           passes of 0.1 and 0.2 ms, vote on 50,000 x 1,024 values
#   silent  the agreement if the last leader does not answer for 0.2 s
# NAMES of algorithms are all_reduce, torus_2d, hierarchical and native (default: all).
# The all-reduces overlap with a backward pass of T (0) seconds, which are not in their time.
# NAME is fat_tree (default), dragonfly or torus; tests/scale/platform.cpp describes these machines.
# A row has the number of ranks, the phase, simulated seconds, messages and bytes of the busiest rank,
# wall seconds, and the peak resident memory in MB. In `step`, the numbers of values and the bandwidths
# are 1 / 390.625 of the real ones. Thus the bytes are smaller by this factor, and the times are not.
# `step` needs a number of groups that is a power of two. Each call builds the program again, in FOLDER (build/scale).
# Exit code: 0 all simulations ended, 1 some did not, 2 usage, 3 no SimGrid.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/usage.sh
source scripts/usage.sh
usage_on_request scripts/simulate_scale.sh "$@"

usage_error() {
    echo "simulate_scale.sh: $1" >&2
    exit 2
}

first=64 last=1024 group=8 machine=fat_tree parts='start step silent'
algorithms='all_reduce torus_2d hierarchical native' backward=0 seconds=600 build=build/scale
while (($#)); do
    (($# >= 2)) || usage_error "$1 needs a value"
    case $1 in
        --ranks)
            [[ $2 =~ ^[0-9]+\.\.[0-9]+$ ]] || usage_error "--ranks: expected A..B such as 64..1024, got '$2'"
            first=${2%..*} last=${2#*..}
            ;;
        --group) group=$2 ;;
        --machine) machine=$2 ;;
        --parts) parts=$2 ;;
        --algorithms) algorithms=$2 ;;
        --backward) backward=$2 ;;
        --seconds) seconds=$2 ;;
        --build) build=$2 ;;
        *) usage_error "unknown option '$1'; --help lists all" ;;
    esac
    shift 2
done
build=$(realpath -m "$build")
[[ $group =~ ^[1-9][0-9]*$ ]] || usage_error "--group: expected an integer of at least 1, got '$group'"
[[ $seconds =~ ^[1-9][0-9]*$ ]] || usage_error "--seconds: expected an integer of at least 1, got '$seconds'"
[[ $backward =~ ^[0-9]+(\.[0-9]+)?$ ]] || usage_error "--backward: expected seconds such as 0.05, got '$backward'"
[[ $machine =~ ^(fat_tree|dragonfly|torus)$ ]] ||
    usage_error "--machine: expected fat_tree, dragonfly or torus, got '$machine'"
[[ $parts =~ ^(start|step|silent)( (start|step|silent))*$ ]] ||
    usage_error "--parts: expected names of start, step and silent, got '$parts'"
name='(all_reduce|torus_2d|hierarchical|native)'
[[ $algorithms =~ ^$name( $name)*$ ]] ||
    usage_error "--algorithms: expected names of all_reduce, torus_2d, hierarchical and native, got '$algorithms'"
((first > 0 && first <= last && first % 8 == 0 && first % group == 0)) ||
    usage_error "--ranks: expected A..B with A, a multiple of 8 and of --group $group, at most B, got '$first..$last'"
if ! command -v smpicxx smpirun > /dev/null; then
    echo "simulate_scale.sh: SimGrid is missing; install the Debian package libsimgrid-dev" >&2
    exit 3
fi

# These calls of comm go to functions of tests/scale/simulated_mpi.cpp.
replaced=()
for name in Test Isend Ibcast Ibarrier Iallreduce Ireduce Comm_split_type Get_processor_name; do
    replaced+=("-DMPI_$name=scale_MPI_$name")
done
mkdir -p "$build"
rm -f "$build"/*.o
for source in tests/scale/{scale,simulated_mpi}.cpp src/base/{error,text,units,process}.cpp \
    src/plan/{layout,parallelism_controller,pipeline}.cpp src/comm/mpi/{channel,mpi_communicator,mpi_world}.cpp \
    src/comm/{all_reduce_schedule,all_reduce_traffic,collectives,gradient_buckets,launch,membership_agreement}.cpp \
    src/comm/{point_to_point_reducer,sync_batch_norm_group,tensor_parallel_exchange,wire_format}.cpp src/evaluation/{ballot,ensemble,top_k}.cpp; do
    object=$build/$(basename "$source" .cpp).o
    options=("${replaced[@]}")
    [[ $source == tests/* ]] && options=()
    # SMPI_PRETEND_CC omits macros such as free(x); sleeping and yielding must take simulated time.
    SMPI_PRETEND_CC=1 smpicxx -std=c++20 -O1 -fPIC -Iinclude -Isrc -Dnanosleep=smpi_nanosleep -Dsched_yield=scale_yield \
        "${options[@]}" -c "$PWD/$source" -o "$object" > "$build/compiler.txt" 2>&1 ||
        { cat "$build/compiler.txt" >&2 && exit 1; }
done
smpicxx "$build"/*.o -o "$build/scale" -lfmt -Wl,-Bsymbolic-functions
${CXX:-c++} -std=c++20 -O1 -shared -fPIC tests/scale/platform.cpp -o "$build/platform.so" -lsimgrid

failed=0
cd "$build"
simulate() { # RANKS PART
    local per_node=8 rank scale=1
    [[ $machine == torus ]] && per_node=1
    # A step has 1 / 390.625 of the values, on links with that fraction of the bandwidth.
    [[ $2 == step ]] && scale=0.00256
    for ((rank = 0; rank < $1; ++rank)); do
        echo "node$((rank / per_node)).$((rank % per_node))"
    done > hosts
    export SCALE_MACHINE=$machine SCALE_NODES=$(($1 / per_node)) SCALE_OF_BANDWIDTHS=$scale
    # The program has no global state of a rank, so ranks need no copies of its globals.
    # SimGrid's selectors that imitate MPI libraries choose collectives that gather the nodes of all ranks
    # in a ring when a communicator is made, which no MPI library does. Acknowledgements cost no bandwidth.
    # Guard pages of more than 8,192 stacks exceed the limit of memory mappings.
    if ! smpirun -np "$1" -platform "$build/platform.so" -hostfile hosts -no-privatize \
        -wrapper "timeout $seconds" --log=root.thres:critical --cfg=smpi/simulate-computation:no \
        --cfg=smpi/coll-selector:default --cfg=smpi/bw-factor:0:1 --cfg=smpi/lat-factor:0:1 \
        --cfg=network/crosstraffic:0 --cfg=network/weight-S:0 \
        --cfg=maxmin/precision:1e-3 --cfg=smpi/test:1e-6 --cfg=smpi/iprobe:1e-6 --cfg=smpi/grow-injected-times:no \
        --cfg=contexts/stack-size:256 --cfg=contexts/guard-size:$(($1 > 8192 ? 0 : 1)) ./scale "$group" "$per_node" "$2" "${algorithms// /,}" \
        "$backward" > rows.txt 2> errors.txt; then
        failed=1
        echo " $1 ranks: the simulation did not end within $seconds s or failed; $build/errors.txt has its messages"
    fi
    case $2 in
        start) cat rows.txt ;;
        step) grep -E ' (all_reduce|torus_2d|hierarchical|native|SyncBatchNorm|tensor|pipeline|vote) ' rows.txt || failed=1 ;;
        silent) grep silent rows.txt || failed=1 ;;
    esac
}

echo " ranks phase                      simulated s  messages        bytes   wall s   RSS MB"
for ((ranks = first; ranks <= last; ranks *= 4)); do
    for part in $parts; do simulate "$ranks" "$part"; done
done
exit $failed
