#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Time of a step by every communication.algorithm and communication.precision over slow links.
# shellcheck source=scripts/experiments/common.sh
source "$(dirname "$(readlink -f "$0")")/common.sh"

read -rd '' description <<'END' || true
Measures the step time and the bytes of one data-parallel model on several hosts. The links are so slow that a step is
mostly communication. Step times are medians over the epochs after the first.

Writes communication.json, communication.txt, communication.svg and the runs. Needs root.
END

one_algorithm='(all_reduce|torus_2d|hierarchical|native)'
one_precision='(fp32|bf16|fp16|int8)'
option workload image_classification "$workloads" W "image_classification or extreme_weather"
option hosts 4 '[2-9]|1[0-6]' N "number of hosts, 2 to 16"
option per-host "1 2" "$rank_counts" '"..."' "ranks per host"
option rate 100mbit "$link_rate" R "rate of a link in each direction"
option algorithms "all_reduce torus_2d hierarchical" "$one_algorithm( $one_algorithm)*" '"..."' \
    "values of communication.algorithm, also native (in fp32 only)"
option precisions "fp32 bf16 fp16 int8" "$one_precision( $one_precision)*" '"..."' "values of communication.precision"
option samples 2 "$small_number" B "samples per rank and step"
option steps 1 "$small_number" S "steps per epoch"
option epochs 4 "$two_or_more" E "number of epochs, at least 2"
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
