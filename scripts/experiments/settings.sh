#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Effect of a setting: speed, bytes and quality of short runs against the default.
# shellcheck source=scripts/experiments/common.sh
source "$(dirname "$(readlink -f "$0")")/common.sh"

read -rd '' description <<'END' || true
Trains one base model of P ranks with configs/quickstart.yaml on synthetic photographs of 8 classes, once unchanged and
once with each setting of the list in this script, each with N seeds. Prints speed, bytes and Top-1. Runs on this
machine without hosts.

Writes settings.json, settings.txt, settings.svg and the runs.
END

# name -> options; the learning rates suit a batch of 32 and few epochs
declare -A settings=(
    [fp32]="training.precision=fp32"
    [bf16]="training.precision=bf16"
    [int8]="training.precision=int8"
    [warmup_none]="training.warmup_epochs=0"
    [lars]="training.optimizer=lars training.learning_rate=2 training.nesterov=false"
    [lamb]="training.optimizer=lamb training.learning_rate=0.004 training.weight_decay=0.01
        training.nesterov=false"
    [adam]="training.optimizer=adam training.learning_rate=0.001 training.nesterov=false"
    [adamw]="training.optimizer=adamw training.learning_rate=0.001 training.weight_decay=0.05
        training.nesterov=false"
    [adagrad]="training.optimizer=adagrad training.learning_rate=0.01 training.nesterov=false"
    [torus_2d]="communication.algorithm=torus_2d"
    [hierarchical]="communication.algorithm=hierarchical"
    [communication_bf16]="communication.precision=bf16"
    [communication_fp16]="communication.precision=fp16"
    [communication_int8]="communication.precision=int8"
    [micro_batches]="parallel.micro_batches=4"
    [batch_norm_all]="training.batch_norm_samples=32"
    [pipeline_1f1b]="parallel.mode=pipeline parallel.micro_batches=4"
    [pipeline_gpipe]="parallel.mode=pipeline parallel.micro_batches=4 parallel.schedule=gpipe"
    [model]="parallel.mode=model"
)
order=(fp32 bf16 int8 warmup_none lars lamb adam adamw adagrad torus_2d hierarchical
    communication_bf16 communication_fp16 communication_int8 micro_batches batch_norm_all
    pipeline_1f1b pipeline_gpipe model)
option only "" '.*' TEXT "only settings whose name contains TEXT; the default is always run"
option ranks 2 "$divisors_of_32" P "number of ranks, 1, 2, 4 or 8"
option seeds 1 '[1-9]' N "run.seed from 1 to N"
option pictures 160 "$small_number" N "training photographs per class"
option size 48 "$image_side" S "side of the images, 32 to 199 pixels"
option epochs 4 "$two_or_more" E "number of epochs, at least 2"
parse_options "$@"
chosen=()
for name in "${order[@]}"; do
    [[ $name != *"${options[only]}"* ]] || chosen+=("$name")
done
((${#chosen[@]})) || usage_error "--only: no setting contains '${options[only]}'; there are ${order[*]}"
prepare
start_locally
limit_ranks "${options[ranks]}" ""
make_photographs "${options[pictures]}" "${options[size]}"
photographs+=(--set bagging.M=1 --set "bagging.P_degree=${options[ranks]}"
    --set bagging.out_of_bag=false --set bagging.sampler=none
    --set "workload.image_size=${options[size]}" --set "workload.epochs=${options[epochs]}")

train() { # name, settings...
    local name=$1 seed setting changes=()
    shift
    for setting in "$@"; do changes+=(--set "$setting"); done
    for ((seed = 1; seed <= options[seeds]; ++seed)); do
        measure "series=$name,seed=$seed" "${options[ranks]}" "${photographs[@]}" \
            --set "run.seed=$seed" "${changes[@]}"
    done
}

train default
for name in "${chosen[@]}"; do
    # shellcheck disable=SC2086  # words
    train "$name" ${settings[$name]}
done
draw
