#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/simulate_scale.sh [--ranks A..B] [--group P] [--seconds S] [--build FOLDER]
# Runs start-up, split, gradient all-reduces, membership agreement and vote of a launch on simulated
# ranks (SimGrid's SMPI, Debian package libsimgrid-dev): A (64), 4 A, 16 A, ... up to B (1024) ranks
# in groups of P (8), at most S seconds (600) for each simulation. Builds in FOLDER (build/scale). A
# row has the number of ranks, the phase, simulated seconds, messages and bytes of the busiest rank,
# wall seconds, and the peak resident memory in MB. The number of groups must be a power of two.
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

first=64 last=1024 group=8 seconds=600 build=build/scale
while (($#)); do
    (($# >= 2)) || usage_error "$1 needs a value"
    case $1 in
        --ranks)
            [[ $2 =~ ^[0-9]+\.\.[0-9]+$ ]] || usage_error "--ranks: expected A..B such as 64..1024, got '$2'"
            first=${2%..*} last=${2#*..}
            ;;
        --group) group=$2 ;;
        --seconds) seconds=$2 ;;
        --build) build=$2 ;;
        *) usage_error "unknown option '$1'; --help lists all" ;;
    esac
    shift 2
done
build=$(realpath -m "$build")
[[ $group =~ ^[1-9][0-9]*$ ]] || usage_error "--group: expected an integer of at least 1, got '$group'"
[[ $seconds =~ ^[1-9][0-9]*$ ]] || usage_error "--seconds: expected an integer of at least 1, got '$seconds'"
((first > 0 && first % 8 == 0 && first % group == 0)) ||
    usage_error "--ranks: expected a multiple of 8 and of --group $group, got '$first'"
if ! command -v smpicxx smpirun > /dev/null; then
    echo "simulate_scale.sh: SimGrid is missing; install the Debian package libsimgrid-dev" >&2
    exit 3
fi

# These calls of comm go to functions of tests/scale/scale.cpp, which count messages.
replaced=()
for name in Test Isend Ibcast Ibarrier Iallreduce Ireduce; do
    replaced+=("-DMPI_$name=scale_MPI_$name")
done
mkdir -p "$build"
for source in tests/scale/scale.cpp src/base/{error,text,units,process}.cpp \
    src/plan/{layout,parallelism_controller}.cpp src/comm/mpi/*.cpp \
    src/comm/{all_reduce_schedule,collectives,gradient_buckets,launch,membership_agreement}.cpp \
    src/comm/{point_to_point_reducer,wire_format}.cpp src/evaluation/{ballot,ensemble,top_k}.cpp; do
    object=$build/$(basename "$source" .cpp).o
    options=("${replaced[@]}")
    [[ $source == tests/* ]] && options=()
    # SMPI_PRETEND_CC omits macros such as free(x); sleeping must take simulated time.
    SMPI_PRETEND_CC=1 smpicxx -std=c++20 -O1 -fPIC -Iinclude -Dnanosleep=smpi_nanosleep \
        "${options[@]}" -c "$PWD/$source" -o "$object" > "$build/compiler.txt" 2>&1 ||
        { cat "$build/compiler.txt" >&2 && exit 1; }
done
smpicxx "$build"/*.o -o "$build/scale" -lfmt

# The machine is NVIDIA's Selene (TOP500 of June 2020; DGX SuperPOD reference architecture
# RA-09950-001): nodes of eight A100 GPUs with eight HDR InfiniBand ports (25 GB/s each), 20 nodes on
# a leaf switch of 40 ports, as many links up as down, NVLink with 300 GB/s per GPU and direction.
# Selene has 560 nodes; larger numbers extend it. Its eight rails are one link here. Latencies are
# assumed: 1 us between nodes, 0.5 us in a node.
write_platform() { # NODES UNIT_OF_BANDWIDTH
    local leaves=$((($1 + 19) / 20))
    cat << XML
<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="selene" prefix="node" suffix="" radical="0-$((leaves * 20 - 1))" speed="1Gf"
           bw="200$2" lat="250ns" loopback_bw="300$2" loopback_lat="500ns"
           topology="FAT_TREE" topo_parameters="2;20,$leaves;1,20;1,1"/>
</platform>
XML
}

failed=0
cd "$build"
simulate() { # RANKS UNIT_OF_BANDWIDTH [ARGUMENT]
    local nodes=$(($1 / 8)) node
    write_platform "$nodes" "$2" > platform.xml
    for ((node = 0; node < nodes; ++node)); do echo "node$node:8"; done > hosts
    # The program has no global state, so ranks need no copies of its globals.
    # The selectors of MPI libraries choose collectives that gather the nodes of all ranks in a ring
    # when a communicator is made, which no such library does.
    if ! smpirun -np "$1" -platform platform.xml -hostfile hosts -no-privatize \
        -wrapper "timeout $seconds" --log=root.thres:critical --cfg=smpi/simulate-computation:no \
        --cfg=smpi/coll-selector:default --cfg=smpi/bw-factor:0:1 --cfg=smpi/lat-factor:0:1 \
        --cfg=smpi/test:1e-6 --cfg=smpi/iprobe:1e-6 --cfg=smpi/grow-injected-times:no \
        --cfg=contexts/stack-size:256 ./scale "$group" "${@:3}" 2> errors.txt; then
        failed=1
        echo " $1 ranks: the simulation did not end within $seconds s or failed; $build/errors.txt has its messages"
    fi
}

echo " ranks phase                      simulated s  messages        bytes   wall s   RSS MB"
for ((ranks = first; ranks <= last; ranks *= 4)); do
    simulate "$ranks" GBps
    # The other rows of this simulation have times of slow links.
    simulate "$ranks" MBps gradients | grep -E ' (all_reduce|torus_2d|hierarchical|native|vote|ranks:) ' || failed=1
done
exit $failed
