#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Scaling efficiency of bagging against one data-parallel model on all ranks (Fig. 9 of the paper).
# shellcheck source=scripts/experiments/common.sh
source "$(dirname "$(readlink -f "$0")")/common.sh"

usage() {
    cat <<'END'
Usage: scripts/experiments/fig9.sh [--workload W] [--ranks "1 2 4 8"] [--share S] [--rate R]
         [--samples B] [--steps N] [--epochs E] [--precision P] [--output DIR] [--program FILE]

Measures the scaling efficiency of FLOPS on 1 to 8 ranks, for bagging (as many base models as ranks) and
for one data-parallel model on all ranks. Each rank trains B samples per step. Each rank is on its own
host; the links have rate R. A control group limits each rank to the same share S of a core, so more
ranks have more computing power even on a few cores. S x ranks should leave some cores free. Epoch
times are medians over the epochs after the first.

  --workload W   image_classification (default) or extreme_weather
  --ranks "..."  from 1 on, in increasing order   (1 2 4 8)
  --share S      share of a core, 0.1 to 1        (0.2)
  --rate R       rate of a link in each direction (1gbit)
  --samples B    samples per rank and step        (8)
  --steps N      steps per epoch                  (2)
  --epochs E     number of epochs, at least 2     (4)
  --precision P  communication.precision          (fp32)
  --output DIR   new folder                       (results/fig9-<UTC time>)

Writes fig9.json, fig9.txt, fig9.svg and the runs. Needs root.
END
}

options+=([workload]=image_classification [ranks]="1 2 4 8" [share]=0.2 [rate]=1gbit [samples]=8
    [steps]=2 [epochs]=4 [precision]=fp32)
legal+=([workload]='image_classification|extreme_weather' [ranks]="1( $rank_counts)?"
    [share]=$share_of_core [rate]=$link_rate [samples]=$small_number [steps]=$small_number
    [epochs]=$two_or_more [precision]='fp32|bf16|fp16|int8')
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
