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

FLOPS and VFLOPS of whole runs with 1 to 4 base models of P ranks each: as in the paper the base
models are added host by host, each host having the P ranks of one. Every rank is held to the same
share S of a core by a control group; hosts are joined by links of R. Image Classification, on
synthetic photographs of 8 classes at 32 x 32.

  --models "..."  base models, in increasing order (1 2 4)
  --degree P      ranks of a base model, on one host: 1, 2, 4 or 8 (2)
  --share S       of a core, 0.1 to 1             (0.2)
  --rate R        of a host's link, each way      (1gbit)
  --pictures N    training photographs of a class (40)
  --epochs E                                      (4)
  --target Q      workload.target_quality         (0.25)
  --settings "..." of the configuration, for all runs, such as training.optimizer=lars (none)
  --output DIR    new folder                      (results/fig5-<UTC time>)

All ranks' shares together may be as many cores as there are; fewer leave room for other programs.
Writes fig5.json, fig5.txt and fig5.svg, and the runs they are from. Needs root for hosts and shares.
END
}

options+=([workload]=image_classification [models]="1 2 4" [degree]=2 [share]=0.2 [rate]=1gbit
    [pictures]=40 [epochs]=4 [target]=0.25 [settings]="")
legal+=([workload]=image_classification [models]=$rank_counts [degree]=$parts_of_32
    [share]=$share_of_core [rate]=$link_rate [pictures]=$small_number [epochs]=$small_number
    [target]='0?\.[0-9]+' [settings]=$several_settings)
parse_options "$@"
check_increasing --models "${options[models]}"
read -ra models <<<"${options[models]}"
degree=${options[degree]}
check_shares $((models[-1] * degree)) "${options[share]}"
enter_private_world "$@"
prepare
start_hosts "${models[-1]}" "${options[rate]}"
all_hosts=("${hosts[@]}")
hold_ranks $((models[-1] * degree)) "${options[share]}"
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
