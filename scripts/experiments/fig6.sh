#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Utilization over time (Fig. 6 of the paper).
# shellcheck source=scripts/experiments/common.sh
source "$(dirname "$(readlink -f "$0")")/common.sh"

read -rd '' description <<'END' || true
Measures every T seconds of one run which fraction of its share of a core each rank uses; the paper shows the
utilization of GPUs. Each of M hosts has a base model of P ranks. A rank that waits for others polls, which counts as
use. If control groups do not count the time, it is read in units of 10 ms, so S x T should be at least some tenths of
a second.

Writes fig6.json, fig6.txt, fig6.svg and the run. Needs root.
END
option workload image_classification "$workloads" W "image_classification or extreme_weather"
option models 4 '[1-9]' M "base models, one per host, 1 to 9"
option degree 2 '[1-8]' P "ranks per base model, 1 to 8"
option share 0.2 "$share_of_core" S "share of a core, 0.1 to 1"
option rate 1gbit "$link_rate" R "rate of a link in each direction"
option steps 10 "$small_number" N "steps per epoch"
option epochs 4 "$small_number" E "number of epochs"
option seconds 1 '0\.[1-9]|[1-9][0-9]?' T "seconds between two readings, 0.1 to 99"
parse_options "$@"
degree=${options[degree]}
check_shares $((options[models] * degree)) "${options[share]}"
enter_private_namespaces "$@"
prepare
start_hosts "${options[models]}" "${options[rate]}"
limit_ranks $((options[models] * degree)) "${options[share]}"

python3 "$experiments/sample_use.py" "${share[1]}" $((options[models] * degree)) \
    "${options[share]}" "${options[seconds]}" "$results/utilisation.tsv" &
sampling=$!
set_speed_options "${options[workload]}" "${options[steps]}" "${options[epochs]}" 8 "$degree"
measure "models=${options[models]}" "$degree" "${speed[@]}" --set "bagging.M=${options[models]}"
wait "$sampling"
draw
