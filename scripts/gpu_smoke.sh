#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/gpu_smoke.sh [BUNDLE] [OUT]
# Tests and measures the CUDA engine on a machine with one GPU and nothing to download, in less
# than 9 minutes. BUNDLE is a folder of scripts/bundle.sh (default: the one with this script, else
# build/bundle), OUT a new folder (gpu_smoke-<UTC time>). Ends with OUT/gpu_smoke.json,
# OUT/gpu_smoke.txt and OUT/logs.tar.gz. Parts that need PyTorch, compute-sanitizer, nsys or ncu are
# skipped if these are missing. PYTHON is a python3 with PyTorch. Exit code: 0 all parts
# passed, 1 some did not, 2 usage, 3 no GPU.
# shellcheck disable=SC2016  # expanded by an inner shell
set -euo pipefail
here=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
source "$here/scripts/usage.sh"
usage_on_request "${BASH_SOURCE[0]}" "$@"
bundle=${1:-$([[ -f $here/bin/env.sh ]] && echo "$here" || echo "$here/build/bundle")}
out=${2:-gpu_smoke-$(date -u +%Y%m%dT%H%M%SZ)}
total_seconds=510
export PYTHON=${PYTHON:-python3}
python=$PYTHON

[[ -f $bundle/bin/env.sh ]] || {
    echo "gpu_smoke.sh: $bundle is not a bundle; make one with scripts/bundle.sh" >&2
    exit 2
}
[[ ! -e $out ]] || { echo "gpu_smoke.sh: $out already exists" >&2 && exit 2; }
bundle=$(realpath "$bundle")
mkdir -p "$out/logs" "$out/scratch"
out=$(realpath "$out")
export PYTHONUNBUFFERED=1 OMP_WAIT_POLICY=passive
cd "$out/scratch"

# Only our programs use the bundle's environment, because PyTorch has its own libraries.
in_bundle=(bash -c 'source "$0/bin/env.sh" && exec "$@"' "$bundle")

record() { # name, exit code or why it was skipped, seconds
    printf '%s\t%s\t%s\n' "$@" >>"$out/parts.tsv"
    printf '%-18s %-40s %5s s\n' "$1" "$([[ $2 == 0 ]] && echo passed || echo "$2")" "$3"
}

part() { # name, seconds it may take, command...
    local name=$1 limit=$2 left=$((total_seconds - SECONDS)) begin=$SECONDS code=0
    if ((left < 10)); then
        record "$name" "skipped: no time left" 0
        return
    fi
    ((limit <= left)) || limit=$left
    timeout --kill-after=5 "$limit" "${@:3}" >"$out/logs/$name.log" 2>&1 </dev/null || code=$?
    ((code != 124 && code != 137)) || code="stopped after $limit s"
    [[ $code == [0-9]* && $code != 0 ]] && code="exit code $code"
    record "$name" "$code" $((SECONDS - begin))
}

# Runs the tests of a program that use the GPU; fails if there are none.
tests() { # name, limit, program
    local program=("${in_bundle[@]}" env HPCAI500_TEST_DEVICE=cuda "$bundle/bin/$3")
    # Reads to the end, because a grep that stops early would fail the pipe.
    if ! timeout 20 "${program[@]}" --gtest_list_tests --gtest_filter='*cuda*' \
        2>"$out/logs/$1.log" | grep '^  ' >>"$out/logs/$1.log"; then
        record "$1" "lists no test for this GPU" 0
        return
    fi
    part "$1" "$2" "${program[@]}" --gtest_filter='*cuda*' --gtest_brief=1 \
        --gtest_output="json:$out/scratch/$1.tests.json"
}

settings=(--config "$bundle/configs/imagenet_nvidia.yaml" --set device.kind=cuda
    --set device.plan_cache=plans.json)
# A bench stopped by its time limit is repeated once with the plans found so far.
bench() { # precision, batch, limit
    local again
    for again in "" _again; do
        part "bench_$1_$2$again" "$3" "${in_bundle[@]}" bash -c '"${@:2}" >"$1.part" && mv "$1.part" "$1"' - \
            "$out/scratch/bench_$1_$2.json" hpcai500 bench "${settings[@]}" --set "training.precision=$1" \
            --set "training.batch_size=$2" --set run.loss_steps=10 --steps 5 --json
        tail -n 1 "$out/parts.tsv" | grep -q 'stopped after' || return 0
    done
}

# Two base models with mixed precision, one rank each, share the GPU.
training() {
    # shellcheck source=scripts/bundle/env.sh
    source "$bundle/bin/env.sh"
    # shellcheck source=scripts/mpi_environment.sh
    source "$bundle/scripts/mpi_environment.sh"
    mpi_environment 2
    hpcai500 data generate photographs --output data --classes 8 --training-per-class 128 \
        --validation-per-class 25 --size 96
    "$bundle/bin/mpirun" --bind-to none -np 2 hpcai500 run \
        --config "$bundle/configs/quickstart.yaml" --output training \
        --set data.path=data/train --set data.validation_path=data/val \
        --set device.kind=cuda --set training.precision=mixed --set device.threads=4 \
        --set bagging.M=2 --set bagging.P_degree=1 --set workload.image_size=64 \
        --set workload.epochs=4 --set device.autotune=false
}
export -f training
export bundle

profiler() { # name: its path, on PATH or in an installation of CUDA or of Nsight
    local found
    found=$(PATH=$PATH:/usr/local/cuda/bin command -v "$1") ||
        found=$(compgen -G "/opt/nvidia/nsight-*/*/$1" | sort -V | tail -n 1)
    [[ -n $found ]] && echo "$found"
}

memcheck() {
    local sanitizer
    sanitizer=$(profiler compute-sanitizer) || {
        record memcheck "skipped: no compute-sanitizer" 0
        return
    }
    part memcheck 60 "${in_bundle[@]}" env HPCAI500_TEST_DEVICE=cuda "$sanitizer" --tool memcheck \
        --report-api-errors no --error-exitcode 9 "$bundle/bin/device_test" --gtest_brief=1 \
        --gtest_filter='*cuda*:-*Convolution*:*PyTorch*'
}

kernel_times() {
    local nsys ncu
    local step=(hpcai500 bench "${settings[@]}" --set training.precision=mixed
        --set training.batch_size=256)
    if nsys=$(profiler nsys); then
        part kernel_times 60 "${in_bundle[@]}" bash -c \
            '"$1" profile --trace=cuda --cuda-graph-trace=node --output step "${@:2}" &&
             "$1" stats --report cuda_gpu_kern_sum --format table step.nsys-rep' - \
            "$nsys" "${step[@]}" --steps 1
    elif ncu=$(profiler ncu); then
        # One row per launch; does not change the clocks of the GPU.
        part kernel_times 60 "${in_bundle[@]}" "$ncu" --clock-control none --csv \
            --metrics gpu__time_duration.sum,dram__bytes.sum --launch-count 600 \
            "${step[@]}" --steps 1
    else
        record kernel_times "skipped: neither nsys nor ncu" 0
    fi
}

pytorch() {
    local left
    timeout 60 "$python" -c 'import torch' 2>/dev/null || {
        record pytorch "skipped: $python has no torch, or does not import it in 60 s" 0
        return
    }
    left=$((total_seconds - SECONDS))
    part pytorch 170 "$python" "$bundle/scripts/compare/pytorch_step.py" --device cuda \
        --batches 256,400,128,64 --steps 30 --warmup 8 --output "$out/scratch/pytorch.json" \
        --seconds $((left < 100 ? left / 2 : 100))
}

"${in_bundle[@]}" "$python" "$bundle/scripts/smoke_report.py" facts "$out" || {
    code=$?
    rm -r "$out"
    exit $code
}
part engine 40 "${in_bundle[@]}" cuda_test --gtest_brief=1 \
    --gtest_output="json:$out/scratch/engine.tests.json"
tests operators 80 device_test
bench mixed 256 75
tests networks 30 graph_test
tests parity 60 parity_test
part training 60 bash -euc training
bench mixed 400 60
pytorch
bench bf16 256 45
bench bf16 400 45
for batch in 128 64; do
    bench mixed $batch 30
    bench bf16 $batch 30
done
memcheck
kernel_times

tar -C "$out" -czf "$out/logs.tar.gz" logs
"$python" "$bundle/scripts/smoke_report.py" report "$out"
