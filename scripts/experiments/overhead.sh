#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Cost of measurements: short runs with and without them, alternately.
# shellcheck source=scripts/experiments/common.sh
source "$(dirname "$(readlink -f "$0")")/common.sh"

read -rd '' description <<'END' || true
Trains configs/smoke.yaml at 48 x 48 on P ranks with 8 samples each, N times alternately with run.measure_phases true
and false. Prints the ratio of the median times of the epochs after the first.

Writes overhead.json and the runs.
END
option ranks 2 "$divisors_of_32" P "ranks of the base model, 1, 2, 4 or 8"
option pairs 10 "$small_number" N "pairs of runs"
option steps 10 "$small_number" N "steps per epoch"
option epochs 6 "$two_or_more" E "number of epochs, at least 2"
parse_options "$@"
prepare
start_locally
limit_ranks "${options[ranks]}" ""
set_speed_options image_classification "${options[steps]}" "${options[epochs]}" 8 "${options[ranks]}"
for ((pair = 1; pair <= options[pairs]; ++pair)); do
    for measures in true false; do
        measure "measures=$measures,pair=$pair" "${options[ranks]}" "${speed[@]}" \
            --set bagging.M=1 --set "run.measure_phases=$measures"
    done
done
python3 - "$results" <<'END'
import json
import pathlib
import statistics
import sys

results = pathlib.Path(sys.argv[1])
seconds = {}
for measures in ("true", "false"):
    runs = sorted(results.glob(f"runs/measures={measures},*.json"))
    seconds[measures] = [
        second for run in runs for second in json.loads(run.read_text())["time"]["epoch_seconds"][1:]
    ]
medians = {key: statistics.median(values) for key, values in seconds.items()}
ratio = medians["true"] / medians["false"]
report = {"epoch_seconds": seconds, "median_epoch_seconds": medians, "ratio": ratio}
(results / "overhead.json").write_text(json.dumps(report, indent=2) + "\n")
print(f"median epoch {medians['true']:.4f} s with and {medians['false']:.4f} s without measuring, "
      f"of {len(seconds['true'])} each: ratio {ratio:.4f}")
END
