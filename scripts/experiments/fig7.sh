#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Training speed against quality (Fig. 7 of the paper).
# shellcheck source=scripts/experiments/common.sh
source "$(dirname "$(readlink -f "$0")")/common.sh"

read -rd '' description <<'END' || true
Measures speed and quality of different numbers of base models on the same number of ranks: (M, P_degree) is (4, 1),
(2, 2), (1, 4), in the paper (8, 8), (4, 16), (1, 64). Each base model trains with configs/quickstart.yaml on its own
bootstrap sample of synthetic photographs of 8 classes. The speed is that of one base model: twice the speed halves the
training time. Runs on this machine without hosts.

Writes fig7.json, fig7.txt, fig7.svg and the runs.
END
options[workload]=image_classification legal[workload]=image_classification
option ranks 4 '[1-9][0-9]?' N "number of all ranks"
option models "4 2 1" "$rank_counts" '"..."' "base models, divisors of N; N / M is 1, 2, 4 or 8"
option pictures 160 "$small_number" N "training photographs per class"
option size 48 "$image_side" S "side of the images, 32 to 199 pixels"
option epochs 4 "$two_or_more" E "number of epochs, at least 2"
option batch 0 '[0-9]|[1-9][0-9]' N "samples per rank and step, as in the paper; 0: 32 samples per base model and step"
option settings "" "$setting_list" '"K=V ..."' "settings of all runs, such as training.optimizer=adagrad"
parse_options "$@"
read -ra models <<<"${options[models]}"
for count in "${models[@]}"; do
    ((options[ranks] % count == 0)) || usage_error "--models: $count does not divide ${options[ranks]} ranks"
    [[ $((options[ranks] / count)) =~ ^($divisors_of_32)$ ]] ||
        usage_error "--models: $((options[ranks] / count)) ranks a model cannot share a batch of 32"
done
prepare
start_locally
limit_ranks "${options[ranks]}" ""
make_photographs "${options[pictures]}" "${options[size]}"

changes=()
for setting in ${options[settings]}; do changes+=(--set "$setting"); done
for count in "${models[@]}"; do
    batch=32
    ((options[batch] == 0)) || batch=$((options[batch] * options[ranks] / count))
    measure "models=$count" "${options[ranks]}" "${photographs[@]}" --set "bagging.M=$count" \
        --set "bagging.P_degree=$((options[ranks] / count))" \
        --set "workload.image_size=${options[size]}" --set "workload.epochs=${options[epochs]}" \
        --set "training.batch_size=$batch" "${changes[@]}"
done
draw
