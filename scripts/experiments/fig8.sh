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

Measures FLOPS by the number of ranks for three settings: fp32 throughout (original),
training.precision bf16, and communication.precision fp16. The P ranks of a base model are on different
hosts, so its gradients cross the links of rate R. A control group limits each rank to the same share S
of a core.

  --workload W   image_classification (default) or extreme_weather
  --models "..." base models, in increasing order (1 2 4)
  --degree P     ranks per base model, 2 to 8     (2)
  --share S      share of a core, 0.1 to 1        (0.2)
  --rate R       rate of a link in each direction (1gbit)
  --samples B    samples per rank and step        (8)
  --steps N      steps per epoch                  (2)
  --epochs E     number of epochs, at least 2     (4)
  --algorithm A  communication.algorithm          (torus_2d)
  --output DIR   new folder                       (results/fig8-<UTC time>)

All settings use the same all-reduce algorithm. Writes fig8.json, fig8.txt, fig8.svg and the runs.
Needs root.
END
}

options+=([workload]=image_classification [models]="1 2 4" [degree]=2 [share]=0.2 [rate]=1gbit
    [samples]=8 [steps]=2 [epochs]=4 [algorithm]=torus_2d)
legal+=([workload]='image_classification|extreme_weather' [models]=$rank_counts [degree]='[2-8]'
    [share]=$share_of_core [rate]=$link_rate [samples]=$small_number [steps]=$small_number
    [epochs]=$two_or_more [algorithm]='all_reduce|torus_2d|hierarchical')
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
