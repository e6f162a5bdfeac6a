#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Scaling efficiency of bagging against one data-parallel model on all ranks (Fig. 9 of the paper).
# shellcheck source=scripts/experiments/common.sh
source "$(dirname "$(readlink -f "$0")")/common.sh"

read -rd '' description <<'END' || true
Measures the scaling efficiency of FLOPS on 1 to 8 ranks, for bagging (as many base models as ranks) and for one
data-parallel model on all ranks. Each rank trains B samples per step. Each rank is on its own host; the links have
rate R. A control group limits each rank to the same share S of a core, so more ranks have more computing power even on
a few cores. S x ranks should leave some cores free. Epoch times are medians over the epochs after the first.

Writes fig9.json, fig9.txt, fig9.svg and the runs. Needs root.
END
option workload image_classification "$workloads" W "image_classification or extreme_weather"
option ranks "1 2 4 8" "1( $rank_counts)?" '"..."' "from 1 on, in increasing order"
option share 0.2 "$share_of_core" S "share of a core, 0.1 to 1"
option rate 1gbit "$link_rate" R "rate of a link in each direction"
option samples 8 "$small_number" B "samples per rank and step"
option steps 2 "$small_number" N "steps per epoch"
option epochs 4 "$two_or_more" E "number of epochs, at least 2"
option precision fp32 'fp32|bf16|fp16|int8' P "communication.precision"
parse_options "$@"
check_increasing --ranks "${options[ranks]}"
read -ra sizes <<<"${options[ranks]}"
check_shares "${sizes[-1]}" "${options[share]}"
enter_private_namespaces "$@"
prepare
start_hosts "${sizes[-1]}" "${options[rate]}"
all_hosts=("${hosts[@]}")
limit_ranks "${sizes[-1]}" "${options[share]}"

for ranks in "${sizes[@]}"; do
    hosts=("${all_hosts[@]:0:ranks}")
    set_speed_options "${options[workload]}" "${options[steps]}" "${options[epochs]}" "${options[samples]}" 1
    measure "series=bagging,ranks=$ranks" 1 "${speed[@]}" --set "bagging.M=$ranks"
    set_speed_options "${options[workload]}" "${options[steps]}" "${options[epochs]}" "${options[samples]}" "$ranks"
    measure "series=data_parallel,ranks=$ranks" 1 "${speed[@]}" --set bagging.M=1 \
        --set "communication.precision=${options[precision]}"
done
draw
