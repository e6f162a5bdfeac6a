#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Time of a step by every communication.algorithm and communication.precision over slow links.
# shellcheck source=scripts/experiments/common.sh
source "$(dirname "$(readlink -f "$0")")/common.sh"

usage() {
    cat <<'END'
Usage: scripts/experiments/communication.sh [--workload W] [--hosts N] [--per-host "1 2"] [--rate R]
         [--algorithms "..."] [--precisions "..."] [--samples B] [--steps S] [--epochs E]
         [--output DIR] [--program FILE]

Measures the step time and the bytes of one data-parallel model on N hosts. The links are so slow that
a step is mostly communication. Step times are medians over the epochs after the first.

  --workload W        image_classification (default) or extreme_weather
  --hosts N           number of hosts, 2 to 16             (4)
  --per-host "..."    ranks per host                       (1 2)
  --rate R            rate of a link in each direction     (100mbit)
  --algorithms "..."  values of communication.algorithm    (all_reduce torus_2d hierarchical),
                      also native, in fp32 only
  --precisions "..."  values of communication.precision    (fp32 bf16 fp16 int8)
  --samples B         samples per rank and step            (2)
  --steps S           steps per epoch                      (1)
  --epochs E          number of epochs, at least 2         (4)
  --output DIR        new folder                           (results/communication-<UTC time>)

Writes communication.json, communication.txt, communication.svg and the runs. Needs root.
END
}

one_algorithm='(all_reduce|torus_2d|hierarchical|native)'
one_precision='(fp32|bf16|fp16|int8)'
options+=([workload]=image_classification [hosts]=4 [per-host]="1 2" [rate]=100mbit
    [algorithms]="all_reduce torus_2d hierarchical" [precisions]="fp32 bf16 fp16 int8" [samples]=2
    [steps]=1 [epochs]=4)
legal+=([workload]='image_classification|extreme_weather' [hosts]='[2-9]|1[0-6]'
    [per-host]=$rank_counts [rate]=$link_rate
    [algorithms]="$one_algorithm( $one_algorithm)*" [precisions]="$one_precision( $one_precision)*"
    [samples]=$small_number [steps]=$small_number [epochs]=$two_or_more)
parse_options "$@"
[[ ${options[algorithms]} != hierarchical || ${options[per-host]} != 1 ]] ||
    usage_error "--algorithms: hierarchical needs more than one rank a host (--per-host)"
enter_private_namespaces "$@"
prepare
start_hosts "${options[hosts]}" "${options[rate]}"
limit_ranks 0 ""

for per_host in ${options[per-host]}; do
    ranks=$((options[hosts] * per_host))
    set_speed_options "${options[workload]}" "${options[steps]}" "${options[epochs]}" "${options[samples]}" "$ranks"
    for algorithm in ${options[algorithms]}; do
        # With one rank per host, hierarchical has no sums within hosts.
        [[ $algorithm != hierarchical || $per_host != 1 ]] || continue
        for precision in ${options[precisions]}; do
            [[ $algorithm != native || $precision == fp32 ]] || continue
            measure "series=$algorithm,per_host=$per_host,precision=$precision" "$per_host" \
                "${speed[@]}" --set bagging.M=1 --set "communication.algorithm=$algorithm" \
                --set "communication.precision=$precision"
        done
    done
done
draw
