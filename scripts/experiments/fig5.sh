#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# FLOPS and VFLOPS against the number of ranks (Fig. 5 of the paper).
# shellcheck source=scripts/experiments/common.sh
source "$(dirname "$(readlink -f "$0")")/common.sh"

read -rd '' description <<'END' || true
Measures FLOPS and VFLOPS of complete runs with 1 to 4 base models of P ranks each. As in the paper, each base model is
on its own host. A control group limits each rank to the same share S of a core, and links of rate R connect the hosts.
The workload is Image Classification on synthetic photographs of 8 classes at 32 x 32. The sum of all shares must not
exceed the number of cores; a smaller sum leaves cores for other programs.

Writes fig5.json, fig5.txt, fig5.svg and the runs. Needs root.
END
options[workload]=image_classification legal[workload]=image_classification
option models "1 2 4" "$rank_counts" '"..."' "base models, in increasing order"
option degree 2 "$divisors_of_32" P "ranks per base model, on one host: 1, 2, 4 or 8"
option share 0.2 "$share_of_core" S "share of a core, 0.1 to 1"
option rate 1gbit "$link_rate" R "rate of a link in each direction"
option pictures 40 "$small_number" N "training photographs per class"
option epochs 4 "$small_number" E "number of epochs"
option target 0.25 '0?\.[0-9]+' Q "workload.target_quality"
option settings "" "$setting_list" '"K=V ..."' "settings of all runs, such as training.optimizer=lars"
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
