#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/gpu_smoke.sh [--parts NAME,...] [--seconds N] [BUNDLE] [OUT]
# Tests and measures the CUDA engine on a machine with one GPU; needs no Internet access. Ends all
# parts after N seconds (default 510). BUNDLE is a folder of scripts/bundle.sh (default: the one with
# this script, else build/bundle). OUT (gpu_smoke-<UTC time>) receives four files, rewritten after
# each part: gpu_smoke.txt, gpu_smoke.json, plans.json, and logs.tar.gz with all logs. If OUT exists,
# the run continues there; program and GPU must be the same. Parts that passed are not repeated. --parts
# selects parts by name or pattern (bench_*); docs/GPU_FIRST_RUN.md lists them. Parts that need
# PyTorch with torchvision, compute-sanitizer or ncu are skipped if these are missing. PYTHON selects python3.
# Exit code: 0 all parts passed or were skipped, 1 some failed or were not completed in time,
# 2 wrong options, 3 no GPU.
# shellcheck disable=SC2016  # expanded by an inner shell
set -euo pipefail
here=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
source "$here/scripts/usage.sh"
usage_on_request "${BASH_SOURCE[0]}" "$@"
parts='*'
total_seconds=510
while [[ ${1-} == --* ]]; do
    case $1 in
        --parts) parts=${2-} ;;
        --seconds) total_seconds=${2-} ;;
        *)
            echo "gpu_smoke.sh: unknown option '$1'; the options are --parts and --seconds" >&2
            exit 2
            ;;
    esac
    shift $(($# < 2 ? 1 : 2))
done
bundle=${1:-$([[ -f $here/bin/env.sh ]] && echo "$here" || echo "$here/build/bundle")}
out=${2:-gpu_smoke-$(date -u +%Y%m%dT%H%M%SZ)}
export PYTHON=${PYTHON:-python3}
python=$PYTHON

[[ $total_seconds =~ ^[1-9][0-9]*$ ]] || {
    echo "gpu_smoke.sh: --seconds needs a positive integer, not '$total_seconds'" >&2
    exit 2
}
[[ -f $bundle/bin/env.sh ]] || {
    echo "gpu_smoke.sh: $bundle is not a bundle; make one with scripts/bundle.sh" >&2
    exit 2
}
bundle=$(realpath "$bundle")
report=$bundle/scripts/smoke_report.py
# Programs of the bundle use its environment; PyTorch does not, because it has its own libraries.
in_bundle=(bash -c 'source "$0/bin/env.sh" && exec "$@"' "$bundle")
export PYTHONUNBUFFERED=1 OMP_WAIT_POLICY=passive

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [[ -f $out/logs.tar.gz ]]; then
    tar -C "$work" -xzf "$out/logs.tar.gz"
    [[ ! -f $out/plans.json ]] || cp "$out/plans.json" "$work"
elif [[ -e $out ]]; then
    echo "gpu_smoke.sh: $out exists and is not of an earlier run: it has no logs.tar.gz" >&2
    exit 2
fi
mkdir -p "$work/logs"
touch "$work/parts.tsv"
timeout 60 "${in_bundle[@]}" "$python" "$report" facts "$work" "$out" || exit
mkdir -p "$out"
out=$(realpath "$out")
cd "$work"

# Replaces whole files, so that OUT has complete files even if the run is killed.
update_outputs() {
    # Exit code 1 of tar: a file, such as clocks.csv, grew while tar read it.
    { tar -czf "$out/logs.tar.gz.part" --warning=no-file-changed --exclude=./data \
        --exclude=./training* . || (($? == 1)); } && mv "$out"/logs.tar.gz{.part,}
    [[ ! -f plans.json ]] || { cp plans.json "$out/plans.json.part" && mv "$out"/plans.json{.part,}; }
    "$python" "$report" report "$work" "$out" >"$work/report.log" 2>&1 || true
}
finish() {
    jobs -rp | xargs -r kill 2>/dev/null || true
    update_outputs
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 143' TERM INT
update_outputs # so that a run killed in its first part can be continued
if command -v nvidia-smi >/dev/null; then
    nvidia-smi --query-gpu=timestamp,clocks.sm,power.draw,temperature.gpu,clocks_event_reasons.active \
        --format=csv -lms 500 >>logs/clocks.csv 2>&1 &
fi

selected=false # whether --parts selects any part, even one that passed before
should_run() { # name: selected and not passed before
    local pattern
    local patterns
    IFS=, read -ra patterns <<<"$parts"
    for pattern in "${patterns[@]}"; do
        # shellcheck disable=SC2053  # a pattern
        [[ $1 == $pattern ]] || continue
        selected=true
        ! grep -q "^$1"$'\t0\t' parts.tsv || return 1
        return 0
    done
    return 1
}

record() { # name, result (0: passed), seconds
    sed -i "/^$1\t/d" parts.tsv
    printf '%s\t%s\t%s\n' "$@" >>parts.tsv
    printf '%-22s %-40s %5s s\n' "$1" "$([[ $2 == 0 ]] && echo passed || echo "$2")" "$3"
    update_outputs
}

# Prints 0 if a command succeeded, else how it ended.
result_of() { # exit code, its limit in seconds
    case $1 in
        0) echo 0 ;;
        124 | 137) echo "stopped after $2 s" ;;
        *) echo "exit code $1" ;;
    esac
}

# Prints the given number of seconds, or the remaining number if that is smaller.
available_seconds() { echo $(($1 < total_seconds - SECONDS ? $1 : total_seconds - SECONDS)); }
min_seconds=3 # with less time left, no part is started

part() { # name, seconds it may take, command...
    local name=$1 begin=$SECONDS code=0 limit
    should_run "$name" || return 0
    limit=$(available_seconds "$2")
    if ((limit < min_seconds)); then
        record "$name" "no time left" 0
        return
    fi
    # Runs in the background, because bash handles signals only after a foreground command ends.
    {
        timeout --kill-after=5 "$limit" "${@:3}" >"logs/$name.log" 2>&1 </dev/null &
        wait $! || code=$?
    } 2>/dev/null # hides a message of bash such as "Aborted"
    record "$name" "$(result_of "$code" "$limit")" $((SECONDS - begin))
}

# Runs test programs at the same time, because they mostly use the CPU. Each runs as several processes,
# which share its tests.
tests() { # seconds they may take, name:program:processes:filter...
    local begin=$SECONDS limit entry name program shards filter shard result
    local started=() running=()
    limit=$(available_seconds "$1")
    for entry in "${@:2}"; do
        IFS=: read -r name program shards filter <<<"$entry"
        should_run "$name" || continue
        if ((limit < min_seconds)); then
            record "$name" "no time left" 0
            continue
        fi
        started+=("$name")
        rm -f "$name".*.code "logs/$name".*.log
        for ((shard = 0; shard < shards; ++shard)); do
            : >"$name.$shard.code" # stays empty if the shard is killed
            {
                timeout --kill-after=5 "$limit" "${in_bundle[@]}" env HPCAI500_TEST_DEVICE=cuda \
                    GTEST_TOTAL_SHARDS="$shards" GTEST_SHARD_INDEX="$shard" "$bundle/bin/$program" \
                    --gtest_color=no --gtest_filter="$filter" >"logs/$name.$shard.log" 2>&1 \
                    </dev/null &
                trap 'kill $!' TERM
                wait $! && echo 0 || echo $?
            } >"$name.$shard.code" 2>/dev/null &
            running+=($!)
        done
    done
    # Without process ids, `wait` would also wait for nvidia-smi, which does not end.
    ((${#running[@]} == 0)) || wait "${running[@]}" || true
    for name in "${started[@]}"; do
        result=$(result_of "$(sort -nu "$name".*.code | tail -n 1)" "$limit")
        grep -q '^\[ RUN' "logs/$name".*.log || result=${result/#0/no test for this GPU}
        [[ -z $(find . -maxdepth 1 -name "$name.*.code" -empty) ]] || result='a process was killed'
        record "$name" "$result" $((SECONDS - begin))
    done
}

settings=(--config "$bundle/configs/imagenet_nvidia.yaml" --set device.kind=cuda
    --set device.plan_cache=plans.json)
detector=(--config "$bundle/configs/extreme_weather.yaml" --set device.kind=cuda
    --set device.plan_cache=plans.json)
# If the time limit stops a bench, it is repeated once with the cuDNN plans found so far.
bench() { # precision, batch, limit in seconds, [suffix of the name, settings...]
    local name=bench_$1_$2${4-}
    for _ in first second; do
        part "$name" "$3" "${in_bundle[@]}" bash -c '"${@:2}" >"$1.part" && mv "$1.part" "$1"' - \
            "$name.json" hpcai500 bench "${settings[@]}" --set "training.precision=$1" \
            --set "training.batch_size=$2" --set run.loss_steps=50 --steps 3 --json "${@:5}"
        grep -q "^$name"$'\tstopped' parts.tsv || return 0
        (($(available_seconds "$3") >= min_seconds)) || return 0
    done
}

validate() { # precision
    part "validate_$1" 150 "${in_bundle[@]}" hpcai500 validate "${settings[@]}" --set "training.precision=$1" \
        --quick --runs 10
}

train() { # ranks, configuration, output, settings...
    # shellcheck source=scripts/bundle/env.sh
    source "$bundle/bin/env.sh"
    # shellcheck source=scripts/mpi_environment.sh
    source "$bundle/scripts/mpi_environment.sh"
    mpi_environment "$1"
    rm -rf "$3"
    "$bundle/bin/mpirun" --bind-to none -np "$1" hpcai500 run --config "$bundle/configs/$2.yaml" \
        --output "$3" --set device.kind=cuda "${@:4}"
}
generate() { # images per class for training and for test, side
    # shellcheck source=scripts/bundle/env.sh
    source "$bundle/bin/env.sh"
    rm -rf data
    hpcai500 data generate photographs --output data --classes 8 \
        --training-per-class "$1" --validation-per-class "$2" --size "$3"
}
photographs=(--set data.path=data/train --set data.validation_path=data/val)

# Two base models with mixed precision, one rank each, share the GPU.
training() {
    generate 128 25 96
    train 2 quickstart training "${photographs[@]}" --set training.precision=mixed \
        --set device.threads=4 --set bagging.M=2 --set bagging.P_degree=1 \
        --set workload.image_size=64 --set workload.epochs=4 --set device.autotune=false
}
training_detector() {
    train 2 extreme_weather_quickstart training_detector --set training.precision=bf16 \
        --set device.threads=8 --set device.autotune=false
}
# Trains with the step of bench_mixed_400 on photographs, which are decoded in the first epoch and
# then stay in the GPU's memory. Prints the speed of each later epoch.
training_speed() {
    generate 2000 25 256
    train 1 imagenet_nvidia training_speed "${photographs[@]}" --set training.precision=mixed \
        --set training.batch_size=400 --set bagging.P_degree=1 --set workload.classes=8 \
        --set workload.epochs=6 --set training.warmup_epochs=1 --set workload.target_quality=0.2 \
        --set run.level=custom --set data.resident_mib=20000 --set device.plan_cache=plans.json \
        --set run.roofline=off
    awk -F, 'NR > 1 { images[$2] += $3; end[$2] = $4 }
        END { for (i = 1; i in images; ++i)
            printf "epoch %d: %.0f images/s\n", i + 1, images[i] / (end[i] - end[i - 1]) }' \
        training_speed/groups/0/steps.csv
}
# Measures the sources of images for the step of bench_mixed_400, with sides of 256 pixels and of 500,
# about the size of ImageNet's. Then trains on images that the GPU decodes.
input() {
    local size
    for size in 256 500; do
        generate 250 25 "$size"
        hpcai500 roofline --config "$bundle/configs/imagenet_nvidia.yaml" --input data/train \
            --device cuda --precision mixed --seconds 8 --set training.batch_size=400 \
            --set device.plan_cache=plans.json --set run.loss_steps=10
    done
    train 1 imagenet_nvidia training_decoded "${photographs[@]}" --set training.precision=mixed \
        --set training.batch_size=400 --set bagging.P_degree=1 --set workload.classes=8 \
        --set workload.epochs=2 --set training.warmup_epochs=1 --set run.level=custom \
        --set data.decoder=gpu --set device.plan_cache=plans.json --set run.roofline=off
    grep -h "the GPU decoded" training_decoded/groups/0/log.txt
}
part_in_shell() { # function (its name is that of the part), limit in seconds
    part "$1" "$2" bash -euc "$(declare -f train generate "$1"; declare -p photographs); $1"
}
export bundle

profiler() { # name: prints its path, from PATH or an installation of CUDA or Nsight
    local found
    found=$(PATH=$PATH:/usr/local/cuda/bin command -v "$1") ||
        found=$(compgen -G "/opt/nvidia/nsight-*/*/$1" | sort -V | tail -n 1)
    [[ -n $found ]] && echo "$found"
}

# Runs tests of kernels under a tool of compute-sanitizer.
sanitizer() { # tool, limit in seconds, filter of tests
    local path
    should_run "$1" || return 0
    path=$(profiler compute-sanitizer) || {
        record "$1" "skipped: no compute-sanitizer" 0
        return
    }
    part "$1" "$2" "${in_bundle[@]}" env HPCAI500_TEST_DEVICE=cuda "$path" --tool "$1" \
        --report-api-errors no --error-exitcode 9 "$bundle/bin/device_test" --gtest_color=no \
        --gtest_filter="$3"
}

# Like bench, with Faster R-CNN instead of ResNet-50.
bench_detector() { # precision, batch, limit in seconds
    local settings=("${detector[@]}")
    bench "$@" _detector
}

# Prints one row for each kernel launch of two steps. ncu leaves the GPU's clocks unchanged.
kernel_times() { # precision, batch
    local ncu name=kernel_times_$1_$2
    should_run "$name" || return 0
    ncu=$(profiler ncu) || {
        record "$name" "skipped: no ncu" 0
        return
    }
    part "$name" 90 "${in_bundle[@]}" "$ncu" --clock-control none --csv \
        --metrics gpu__time_duration.sum,dram__bytes.sum --launch-count 1400 \
        hpcai500 bench "${settings[@]}" --set "training.precision=$1" \
        --set "training.batch_size=$2" --set device.recording=false --set run.loss_steps=1 --steps 1
}

has_module() { # part, module: records that the part is skipped if Python cannot import the module
    "$python" -c "import $2" 2> /dev/null || {
        record "$1" "skipped: $python has no $2" 0
        return 1
    }
}

pytorch() { # limit in seconds, suffix of the name, options...
    local left name=pytorch$2
    should_run "$name" || return 0
    has_module "$name" torchvision || return 0
    left=$((total_seconds - SECONDS))
    part "$name" "$1" "$python" "$bundle/scripts/compare/pytorch_step.py" --device cuda --steps 30 \
        --warmup 8 --output "$name.json" --seconds $((left < $1 ? left * 2 / 3 : $1 * 2 / 3)) "${@:3}"
}

torchvision_detector() { # limit in seconds, batch size
    local name=pytorch_detector
    should_run "$name" && has_module "$name" torchvision || return 0
    part "$name" "$1" "$python" "$bundle/scripts/compare/torchvision_detector.py" step --device cuda \
        --config "$bundle/configs/extreme_weather.yaml" --batch "$2" --steps 10 --output "$name.json"
}

tests 120 'engine:cuda_test:1:*-*NcclOfOneRank*' 'operators:device_test:10:*cuda*' \
    'networks:graph_test:2:*cuda*' 'parity:parity_test:4:*cuda*-*ResNet50Fused*'
tests 60 'nccl:cuda_test:1:*NcclOfOneRank*'
tests 120 'fused:parity_test:1:*ResNet50Fused*cuda*'
bench mixed 256 75
bench mixed 400 60
kernel_times mixed 400
bench mixed 256 45 _unfused --set training.fusion=false
bench_detector bf16 8 60
part_in_shell training 60
part_in_shell training_detector 60
part_in_shell training_speed 60
part_in_shell input 90
validate mixed
validate bf16
pytorch 150 _fp16 --batches 400,256 --precisions fp16
bench bf16 256 45
bench bf16 400 45
pytorch 120 _bf16 --batches 400,256 --precisions bf16 --variants eager,graphs
torchvision_detector 60 8
bench_detector bf16 16 60
bench_detector mixed 8 60
for batch in 128 64 512; do
    bench mixed $batch 40
    bench bf16 $batch 40
done
for precision in tf32 fp32; do
    bench $precision 256 40
    bench $precision 64 40
done
small='*BatchNorm*cuda_fp16*:*Pointwise*cuda_fp16*:*Pool*cuda_fp16*:*Detection*cuda_fp16*:*Softmax*cuda_fp16*:*Update*cuda_fp16*'
sanitizer racecheck 90 "$small"
sanitizer synccheck 40 "$small"
sanitizer memcheck 60 '*cuda*:-*Convolution*:*PyTorch*'
$selected || {
    echo "gpu_smoke.sh: --parts '$parts' selects no part" >&2
    exit 2
}
update_outputs
"$python" "$report" report "$work" "$out" || exit 1 # also if the report itself fails
