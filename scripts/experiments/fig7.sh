#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Training speed against quality (Fig. 7 of the paper).
# shellcheck source=scripts/experiments/common.sh
source "$(dirname "$(readlink -f "$0")")/common.sh"

usage() {
    cat <<'END'
Usage: scripts/experiments/fig7.sh [--ranks N] [--models "4 2 1"] [--pictures N] [--size S]
         [--epochs E] [--batch N] [--settings "K=V ..."] [--output DIR] [--program FILE]

Measures speed and quality of different numbers of base models on the same number of ranks: (M,
P_degree) is (4, 1), (2, 2), (1, 4), in the paper (8, 8), (4, 16), (1, 64). Each base model trains with
configs/quickstart.yaml on its own bootstrap sample of synthetic photographs of 8 classes. The speed is
that of one base model: twice the speed halves the training time. Runs on this machine without hosts.

  --ranks N       number of all ranks             (4)
  --models "..."  base models, divisors of N; N / M is 1, 2, 4 or 8 (4 2 1)
  --pictures N    training photographs per class  (160)
  --size S        side of the images, 32 to 199 pixels (48)
  --epochs E      number of epochs, at least 2    (4)
  --batch N       samples per rank and step, as in the paper, where one model on all ranks has the
                  largest batch; 0: 32 samples per base model, for any number of ranks (0)
  --settings "..." settings of all runs, such as training.optimizer=adagrad (none)
  --output DIR    new folder                      (results/fig7-<UTC time>)

Writes fig7.json, fig7.txt, fig7.svg and the runs.
END
}

options+=([workload]=image_classification [ranks]=4 [models]="4 2 1" [pictures]=160 [size]=48
    [epochs]=4 [batch]=0 [settings]="")
legal+=([workload]=image_classification [ranks]='[1-9][0-9]?' [models]=$rank_counts
    [pictures]=$small_number [size]='3[2-9]|[4-9][0-9]|1[0-9][0-9]' [epochs]=$two_or_more
    [batch]='[0-9]|[1-9][0-9]' [settings]=$setting_list)
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
