#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Speed of each precision and communication precision (Fig. 8 of the paper).
# shellcheck source=scripts/experiments/common.sh
source "$(dirname "$(readlink -f "$0")")/common.sh"

read -rd '' description <<'END' || true
Measures FLOPS by the number of ranks for three settings: fp32 throughout (original), training.precision bf16, and
communication.precision fp16. The P ranks of a base model are on different hosts, so its gradients cross the links of
rate R. A control group limits each rank to the same share S of a core. All settings use the same all-reduce algorithm.

Writes fig8.json, fig8.txt, fig8.svg and the runs. Needs root.
END
option workload image_classification "$workloads" W "image_classification or extreme_weather"
option models "1 2 4" "$rank_counts" '"..."' "base models, in increasing order"
option degree 2 '[2-8]' P "ranks per base model, 2 to 8"
option share 0.2 "$share_of_core" S "share of a core, 0.1 to 1"
option rate 1gbit "$link_rate" R "rate of a link in each direction"
option samples 8 "$small_number" B "samples per rank and step"
option steps 2 "$small_number" N "steps per epoch"
option epochs 4 "$two_or_more" E "number of epochs, at least 2"
option algorithm torus_2d 'all_reduce|torus_2d|hierarchical' A "communication.algorithm"
parse_options "$@"
check_increasing --models "${options[models]}"
read -ra models <<<"${options[models]}"
degree=${options[degree]}
check_shares $((models[-1] * degree)) "${options[share]}"
enter_private_namespaces "$@"
prepare
start_hosts $((models[-1] * degree)) "${options[rate]}"
all_hosts=("${hosts[@]}")
limit_ranks $((models[-1] * degree)) "${options[share]}"

for count in "${models[@]}"; do
    hosts=("${all_hosts[@]:0:count * degree}")
    set_speed_options "${options[workload]}" "${options[steps]}" "${options[epochs]}" "${options[samples]}" "$degree"
    speed+=(--set "bagging.M=$count" --set "communication.algorithm=${options[algorithm]}")
    measure "series=original,ranks=$((count * degree))" 1 "${speed[@]}" --set training.precision=fp32
    measure "series=precision_bf16,ranks=$((count * degree))" 1 "${speed[@]}" \
        --set training.precision=bf16
    measure "series=communication_fp16,ranks=$((count * degree))" 1 "${speed[@]}" \
        --set training.precision=fp32 --set communication.precision=fp16
done
draw
