#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Speed of each precision and communication precision (Fig. 8 of the paper).
# shellcheck source=scripts/experiments/common.sh
source "$(dirname "$(readlink -f "$0")")/common.sh"

usage() {
    cat <<'END'
Usage: scripts/experiments/fig8.sh [--workload W] [--models "1 2 4"] [--degree P] [--share S]
         [--rate R] [--samples B] [--steps N] [--epochs E] [--algorithm A] [--output DIR]
         [--program FILE]

FLOPS against ranks of three settings: fp32 throughout (original), training.precision bf16, and
communication.precision fp16. Each base model has P ranks on hosts of their own, joined by links of R,
so that its gradients cross the links; each rank is held to the same share S of a core.

  --workload W   image_classification (default) or extreme_weather
  --models "..." base models, in increasing order (1 2 4)
  --degree P     ranks of a base model, 2 to 8    (2)
  --share S      of a core, 0.1 to 1              (0.2)
  --rate R       of a host's link, each way       (1gbit)
  --samples B    of a rank in a step              (8)
  --steps N      of an epoch                      (2)
  --epochs E     at least 2                       (4)
  --algorithm A  communication.algorithm          (torus_2d)
  --output DIR   new folder                       (results/fig8-<UTC time>)

The original sums by the same algorithm as the others. Writes fig8.json, fig8.txt and fig8.svg, and
the runs they are from. Needs root for hosts and shares.
END
}

options+=([workload]=image_classification [models]="1 2 4" [degree]=2 [share]=0.2 [rate]=1gbit
    [samples]=8 [steps]=2 [epochs]=4 [algorithm]=torus_2d)
legal+=([workload]='image_classification|extreme_weather' [models]=$rank_counts [degree]='[2-8]'
    [share]=$share_of_core [rate]=$link_rate [samples]=$small_number [steps]=$small_number
    [epochs]=$several [algorithm]='all_reduce|torus_2d|hierarchical')
parse_options "$@"
check_increasing --models "${options[models]}"
read -ra models <<<"${options[models]}"
degree=${options[degree]}
check_shares $((models[-1] * degree)) "${options[share]}"
enter_private_world "$@"
prepare
start_hosts $((models[-1] * degree)) "${options[rate]}"
all_hosts=("${hosts[@]}")
hold_ranks $((models[-1] * degree)) "${options[share]}"

for count in "${models[@]}"; do
    hosts=("${all_hosts[@]:0:count * degree}")
    speed_of "${options[workload]}" "${options[steps]}" "${options[epochs]}" "${options[samples]}" "$degree"
    speed+=(--set "bagging.M=$count" --set "communication.algorithm=${options[algorithm]}")
    measure "series=original,ranks=$((count * degree))" 1 "${speed[@]}" --set training.precision=fp32
    measure "series=precision_bf16,ranks=$((count * degree))" 1 "${speed[@]}" \
        --set training.precision=bf16
    measure "series=communication_fp16,ranks=$((count * degree))" 1 "${speed[@]}" \
        --set training.precision=fp32 --set communication.precision=fp16
done
draw
