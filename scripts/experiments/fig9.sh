#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Scale efficiency of bagging against one data-parallel model on all ranks (Fig. 9 of the paper).
# shellcheck source=scripts/experiments/common.sh
source "$(dirname "$(readlink -f "$0")")/common.sh"

usage() {
    cat <<'END'
Usage: scripts/experiments/fig9.sh [--workload W] [--ranks "1 2 4 8"] [--share S] [--rate R]
         [--samples B] [--steps N] [--epochs E] [--precision P] [--output DIR] [--program FILE]

Scale efficiency in FLOPS, on 1 to 8 ranks, of bagging (as many base models as ranks) against one
data-parallel model on all of them; each rank trains B samples a step at every size. Each rank is on
a host of its own, joined by links of R, and is held to the same share S of a core by a control group,
so that more ranks are more machine although this one has few cores. S x ranks should leave some
of the cores free. An epoch's time is the median over the epochs after the first.

  --workload W   image_classification (default) or extreme_weather
  --ranks "..."  from 1 on, in increasing order   (1 2 4 8)
  --share S      of a core, 0.1 to 1              (0.2)
  --rate R       of a host's link, each way       (1gbit)
  --samples B    of a rank in a step              (8)
  --steps N      of an epoch                      (2)
  --epochs E     at least 2                       (4)
  --precision P  communication.precision          (fp32)
  --output DIR   new folder                       (results/fig9-<UTC time>)

Writes fig9.json, fig9.txt and fig9.svg, and the runs they are from. Needs root for hosts and shares.
END
}

options+=([workload]=image_classification [ranks]="1 2 4 8" [share]=0.2 [rate]=1gbit [samples]=8
    [steps]=2 [epochs]=4 [precision]=fp32)
legal+=([workload]='image_classification|extreme_weather' [ranks]="1( $rank_counts)?"
    [share]=$share_of_core [rate]=$link_rate [samples]=$small_number [steps]=$small_number
    [epochs]=$several [precision]='fp32|bf16|fp16|int8')
parse_options "$@"
check_increasing --ranks "${options[ranks]}"
read -ra sizes <<<"${options[ranks]}"
check_shares "${sizes[-1]}" "${options[share]}"
enter_private_world "$@"
prepare
start_hosts "${sizes[-1]}" "${options[rate]}"
all_hosts=("${hosts[@]}")
hold_ranks "${sizes[-1]}" "${options[share]}"

for ranks in "${sizes[@]}"; do
    hosts=("${all_hosts[@]:0:ranks}")
    speed_of "${options[workload]}" "${options[steps]}" "${options[epochs]}" "${options[samples]}" 1
    measure "series=bagging,ranks=$ranks" 1 "${speed[@]}" --set "bagging.M=$ranks"
    speed_of "${options[workload]}" "${options[steps]}" "${options[epochs]}" "${options[samples]}" "$ranks"
    measure "series=data_parallel,ranks=$ranks" 1 "${speed[@]}" --set bagging.M=1 \
        --set "communication.precision=${options[precision]}"
done
draw
