#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# FLOPS and VFLOPS against the number of ranks (Fig. 5 of the paper).
# shellcheck source=scripts/experiments/common.sh
source "$(dirname "$(readlink -f "$0")")/common.sh"

usage() {
    cat <<'END'
Usage: scripts/experiments/fig5.sh [--models "1 2 4"] [--degree P] [--share S] [--rate R]
         [--pictures N] [--epochs E] [--target Q] [--settings "K=V ..."] [--output DIR]
         [--program FILE]

Measures FLOPS and VFLOPS of complete runs with 1 to 4 base models of P ranks each. As in the paper,
each base model is on its own host. A control group limits each rank to the same share S of a core, and
links of rate R connect the hosts. The workload is Image Classification on synthetic photographs of
8 classes at 32 x 32.

  --models "..."  base models, in increasing order (1 2 4)
  --degree P      ranks per base model, on one host: 1, 2, 4 or 8 (2)
  --share S       share of a core, 0.1 to 1        (0.2)
  --rate R        rate of a link in each direction (1gbit)
  --pictures N    training photographs per class   (40)
  --epochs E      number of epochs                 (4)
  --target Q      workload.target_quality          (0.25)
  --settings "..." settings of all runs, such as training.optimizer=lars (none)
  --output DIR    new folder                       (results/fig5-<UTC time>)

The sum of all shares may be the number of cores; a smaller sum leaves cores for other programs.
Writes fig5.json, fig5.txt, fig5.svg and the runs. Needs root.
END
}

options+=([workload]=image_classification [models]="1 2 4" [degree]=2 [share]=0.2 [rate]=1gbit
    [pictures]=40 [epochs]=4 [target]=0.25 [settings]="")
legal+=([workload]=image_classification [models]=$rank_counts [degree]=$divisors_of_32
    [share]=$share_of_core [rate]=$link_rate [pictures]=$small_number [epochs]=$small_number
    [target]='0?\.[0-9]+' [settings]=$setting_list)
parse_options "$@"
check_increasing --models "${options[models]}"
read -ra models <<<"${options[models]}"
degree=${options[degree]}
check_shares $((models[-1] * degree)) "${options[share]}"
enter_private_namespaces "$@"
prepare
start_hosts "${models[-1]}" "${options[rate]}"
all_hosts=("${hosts[@]}")
limit_ranks $((models[-1] * degree)) "${options[share]}"
make_photographs "${options[pictures]}" 32

changes=()
for setting in ${options[settings]}; do changes+=(--set "$setting"); done
for count in "${models[@]}"; do
    hosts=("${all_hosts[@]:0:count}")
    measure "ranks=$((count * degree))" "$degree" "${photographs[@]}" --set "bagging.M=$count" \
        --set "bagging.P_degree=$degree" --set workload.image_size=32 \
        --set "workload.epochs=${options[epochs]}" --set "workload.target_quality=${options[target]}" \
        "${changes[@]}"
done
draw
