#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Utilization over time (Fig. 6 of the paper).
# shellcheck source=scripts/experiments/common.sh
source "$(dirname "$(readlink -f "$0")")/common.sh"

usage() {
    cat <<'END'
Usage: scripts/experiments/fig6.sh [--workload W] [--models M] [--degree P] [--share S] [--rate R]
         [--steps N] [--epochs E] [--seconds T] [--output DIR] [--program FILE]

Measures every T seconds of one run which fraction of its share of a core each rank uses; the paper
shows the utilization of GPUs. Each of M hosts has a base model of P ranks. A rank that waits for others polls,
which counts as use. If control groups do not count the time, it is read in units of 10 ms, so S x T
should be at least some tenths of a second.

  --workload W   image_classification (default) or extreme_weather
  --models M     base models, one per host, 1 to 9 (4)
  --degree P     ranks per base model, 1 to 8      (2)
  --share S      share of a core, 0.1 to 1         (0.2)
  --rate R       rate of a link in each direction  (1gbit)
  --steps N      steps per epoch                   (10)
  --epochs E     number of epochs                  (4)
  --seconds T    between two readings, 0.1 to 99   (1)
  --output DIR   new folder                        (results/fig6-<UTC time>)

Writes fig6.json, fig6.txt, fig6.svg and the run. Needs root.
END
}

options+=([workload]=image_classification [models]=4 [degree]=2 [share]=0.2 [rate]=1gbit [steps]=10
    [epochs]=4 [seconds]=1)
legal+=([workload]='image_classification|extreme_weather' [models]='[1-9]' [degree]='[1-8]'
    [share]=$share_of_core [rate]=$link_rate [steps]=$small_number [epochs]=$small_number
    [seconds]='0\.[1-9]|[1-9][0-9]?')
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
