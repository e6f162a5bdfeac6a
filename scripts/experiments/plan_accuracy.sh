#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Accuracy of `hpcai500 plan`: one calibration, then runs of other sizes.
# shellcheck source=scripts/experiments/common.sh
source "$(dirname "$(readlink -f "$0")")/common.sh"

read -rd '' description <<'END' || true
Measures this machine once with `hpcai500 roofline`, on P ranks that train one base model of configs/smoke.yaml at
S x S with N samples per rank. Then predicts and makes three runs of other sizes, given as M x P_degree and samples per
rank and step: 1 x P with N / 2, P x 1 with N and 1 x 1 with N / 2. Prints the predicted and measured training time,
the latter from the median epoch, and the predicted and measured memory of the rank that uses most. Runs on this
machine without hosts.

Writes roofline.json, plan_accuracy.json, the plans and the runs.
END
option ranks 2 '2|4|8' P "number of ranks, 2, 4 or 8"
option size 64 "$image_side" S "side of the images, 32 to 199 pixels"
option batch 16 '[2468]|[1-9][02468]' N "samples per rank, even"
option seconds 30 "$small_number" X "duration of the calibration, seconds"
option steps 6 "$small_number" N "steps per epoch"
option epochs 5 "$two_or_more" E "number of epochs, at least 2"
parse_options "$@"
prepare
start_locally
limit_ranks "${options[ranks]}" ""
ranks=${options[ranks]}

set_run_options() { # base models, ranks of each, samples of a rank
    set_speed_options image_classification "${options[steps]}" "${options[epochs]}" "$3" "$2"
    speed=("${speed[@]/workload.image_size=48/workload.image_size=${options[size]}}")
    speed+=(--set "bagging.M=$1" --set run.roofline=off)
}

set_run_options 1 "$ranks" "${options[batch]}"
mpi_environment "$ranks" >/dev/null
env OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive mpirun --bind-to none -np "$ranks" "$program" \
    roofline "${speed[@]}" --seconds "${options[seconds]}" --output "$results/roofline.json" \
    >"$results/roofline.txt" 2>&1 || { tail -n 20 "$results/roofline.txt" >&2 && exit 1; }

for case in "1 $ranks $((options[batch] / 2))" "$ranks 1 ${options[batch]}" "1 1 $((options[batch] / 2))"; do
    read -r models degree samples <<<"$case"
    name="models=$models,degree=$degree,samples=$samples"
    set_run_options "$models" "$degree" "$samples"
    "$program" plan "${speed[@]}" --ranks $((models * degree)) --roofline "$results/roofline.json" \
        --json >"$results/runs/$name.plan"
    measure "$name" $((models * degree)) "${speed[@]}"
    cat "$scratch/run/groups"/*/ranks.csv >"$results/runs/$name.ranks"
done
python3 - "$results" <<'END'
import csv
import json
import pathlib
import statistics
import sys

results = pathlib.Path(sys.argv[1])
rows = []
for plan_file in sorted(results.glob("runs/*.plan")):
    plan = json.loads(plan_file.read_text())
    run = json.loads(plan_file.with_suffix(".json").read_text())
    with plan_file.with_suffix(".ranks").open() as lines:
        peaks = [float(rank["peak_memory_bytes"]) for rank in csv.DictReader(lines)
                 if rank["group_rank"] != "group_rank"]
    memory = plan["memory_per_rank"]
    training = memory["total_bytes"] - max(
        0, memory["evaluation_bytes"] - memory["working_copy_bytes"] - memory["activation_bytes"])
    row = {
        "run": plan_file.stem,
        "predicted_epoch_seconds": plan["time"]["epoch_seconds"],
        "measured_epoch_seconds": statistics.median(run["time"]["epoch_seconds"][1:]),
        "predicted_training_bytes": training,
        "measured_peak_bytes": max(peaks),
    }
    row["time_ratio"] = row["predicted_epoch_seconds"] / row["measured_epoch_seconds"]
    row["memory_ratio"] = row["predicted_training_bytes"] / row["measured_peak_bytes"]
    rows.append(row)
    print(f"{row['run']}: an epoch {row['predicted_epoch_seconds']:.2f} s predicted, "
          f"{row['measured_epoch_seconds']:.2f} s measured, ratio {row['time_ratio']:.3f}; memory "
          f"{row['predicted_training_bytes'] / 1e6:.0f} MB predicted, "
          f"{row['measured_peak_bytes'] / 1e6:.0f} MB measured, ratio {row['memory_ratio']:.3f}")
(results / "plan_accuracy.json").write_text(json.dumps(rows, indent=2) + "\n")
END
