#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Creates several virtual hosts on this machine, runs the benchmark on them and compares the traffic of
# their links with the results. --help has the details.
set -euo pipefail
root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
# shellcheck source=scripts/hosts/hosts.sh
source "$root/scripts/hosts/hosts.sh"

usage() {
    cat <<'END'
Usage: scripts/multihost_test.sh [--hosts N] [--rate R] [--steps S] [--only TEXT] [--tolerance T]
                                 [--program FILE]

Makes N hosts (default 4, 2 to 16) on this machine, each with its own network, name, shared memory
and disk. Links of rate R (1gbit, in the format of tc) in each direction connect them. One small model
is trained on all hosts, with one and with two ranks per host: with every communication.algorithm and
communication.precision, with BatchNorm statistics of all ranks ("statistics"), and with one stage of
the model on each host ("pipeline"). Each case has a run of S + 2 steps (S is 10) and a run of 2 steps.
"measured" is the number of bytes per step that left the busiest host, without headers and
retransmitted segments ("retx"): the difference of the two runs, divided by S. "counted" is the number in
the result. The ratio measured / counted must be 1 to within T (0.01). "formula" is the prediction of
`hpcai500 plan`. The ratio counted / formula must be 1 to within 0.02. Both are
out_of_node_bytes_per_step, in a pipeline plus message_bytes_per_step of each rank of a host. Then the
script stages photographs to the disks of the hosts (data.staging) twice and checks the files.

  --only TEXT     only rows that contain TEXT, such as "hierarchical", "int8", "pipeline" or "staging"
  --program FILE  default build/release/hpcai500

Needs root, and ip and tc (iproute2). Leaves no files. Exit code: 0 all rows passed, 1 some failed,
2 usage, 3 hosts cannot be created here.
END
}

usage_error() {
    echo "multihost_test.sh: $1" >&2
    exit 2
}

is_integer() { [[ $1 =~ ^[1-9][0-9]{0,3}$ ]] && (($1 >= $2 && $1 <= $3)); }

arguments=("$@")
count=4 rate=1gbit steps=10 only="" tolerance=0.01 program=$root/build/release/hpcai500
while (($#)); do
    case $1 in
        --help | -h) usage && exit ;;
        --hosts | --rate | --steps | --only | --tolerance | --program) ;;
        *) usage_error "unknown option '$1'; --help lists all" ;;
    esac
    (($# >= 2)) || usage_error "$1 needs a value"
    case $1 in
        --hosts) count=$2 ;;
        --rate) rate=$2 ;;
        --steps) steps=$2 ;;
        --only) only=$2 ;;
        --tolerance) tolerance=$2 ;;
        --program) program=$(realpath -m "$2") ;;
    esac
    shift 2
done
is_integer "$count" 2 16 || usage_error "--hosts: expected an integer from 2 to 16, got '$count'"
is_integer "$steps" 1 1000 || usage_error "--steps: expected an integer from 1 to 1000, got '$steps'"
[[ $rate =~ ^[1-9][0-9]*[kmg]bit$ ]] || usage_error "--rate: expected a rate such as 100mbit or 1gbit, got '$rate'"
[[ $tolerance =~ ^0?\.[0-9]+$ ]] || usage_error "--tolerance: expected a fraction such as 0.01, got '$tolerance'"
[[ -f $program && -x $program ]] || usage_error "$program does not exist; scripts/build.sh builds it"

enter_private_namespaces "${arguments[@]}"
start_hosts "$count" "$rate"
cd "$scratch"

failures=0 rows=0
is_selected() { [[ -z $only || $1 == *"$only"* ]]; }

# One run; prints the end of its log and returns false if it fails. Writes its traffic to FOLDER.links.
run_case() { # folder, ranks on each host, options...
    local folder=$1 ranks=$2 code=0
    shift 2
    print_link_counters >"$folder.before"
    run_on_hosts "$ranks" timeout --kill-after=5 300 "$program" run --output "$scratch/$folder" "$@" \
        >"$folder.log" 2>&1 || code=$?
    print_link_counters | paste -d ' ' "$folder.before" - >"$folder.links"
    if ((code)); then
        tail -n 5 "$folder.log" | cut -c1-300
        echo "exit code $code"
        return 1
    fi
}

# Prints the row of a case, from its two runs.
compare_traffic() { # long run, short run, label, ranks on each host
    python3 - "$@" "$steps" "$tolerance" "$count" <<'END'
import json, sys

HEADER = 66  # bytes of Ethernet, IPv4 and TCP with time stamps, of each packet
SEGMENT = 1448  # largest payload of a packet, bytes
FORMULA_TOLERANCE = 0.02  # a run sends whole blocks of 256 values
long, short, label, ranks, steps, tolerance, hosts = sys.argv[1:]
steps = int(steps)

def payload(run):
    """Bytes that each host sent, without headers and retransmissions; retransmitted segments."""
    sent, all_resent = {}, 0
    for line in open(run + ".links"):
        host, bytes0, packets0, resent0, _, bytes1, packets1, resent1 = line.split()
        resent = int(resent1) - int(resent0)
        sent[host] = int(bytes1) - int(bytes0) - HEADER * (int(packets1) - int(packets0))
        sent[host] -= SEGMENT * resent
        all_resent += resent
    return sent, all_resent

def out_of_host(sums, parallel):
    """Bytes that leave a host: sums and, in a pipeline, messages of the host's ranks to other stages."""
    return sums["out_of_node_bytes_per_step"] + int(ranks) * parallel["message_bytes_per_step"]

result, plan = json.load(open(long + "/result.json")), json.load(open(long + ".plan"))
taken = [json.load(open(f"{run}/groups/0/record.json"))["record"] for run in (long, short)]
(long_sent, resent), (short_sent, _) = payload(long), payload(short)
measured = max(long_sent[host] - short_sent[host] for host in long_sent) / steps
counted = out_of_host(result["communication"], result["parallel"])
formula = out_of_host(plan["traffic_per_rank"], plan["parallel"])
seconds = (taken[0]["training_seconds"] - taken[1]["training_seconds"]) / steps
verdict = "passed"
if result["topology"]["nodes"] != int(hosts):
    verdict = f"FAILED: {result['topology']['nodes']} nodes"
elif taken[0]["iterations"] - taken[1]["iterations"] != steps:
    verdict = "FAILED: the runs had wrong numbers of steps"
elif not abs(measured / counted - 1) <= float(tolerance):
    verdict = "FAILED: the links carried another number of bytes"
elif not abs(counted / formula - 1) <= FORMULA_TOLERANCE:
    verdict = "FAILED: the formula gives another number"
print(f"{label}  {formula:>9.0f}  {counted:>9.0f}  {measured:>9.0f}  {measured / counted:>7.4f}"
      f"  {resent:>5}  {1e3 * seconds:>8.1f}  {verdict}")
sys.exit(verdict.startswith("FAILED"))
END
}

traffic_row() { # ranks on each host, what, columns, precision, samples of a step, options...
    local ranks=$1 batch=$5 label run options length
    label=$(printf '%d x %d  %-12s  %-4s  %-4s' "$count" "$ranks" "$2" "$3" "$4")
    is_selected "$label" || return 0
    options=("${@:6}" --set "bagging.P_degree=$((count * ranks))" --set "training.batch_size=$batch")
    rows=$((rows + 1))
    run=traffic$rows
    for length in $((steps + 2)) 2; do
        if ! run_case "$run.$length" "$ranks" "${options[@]}" \
            --set "data.synthetic_samples=$((batch * length))"; then
            echo "$label  FAILED: the run failed"
            failures=$((failures + 1))
            return
        fi
    done
    "$program" plan "${options[@]}" --ranks "$((count * ranks))" --ranks-per-node "$ranks" --json \
        >"$run.$((steps + 2)).plan"
    compare_traffic "$run.$((steps + 2))" "$run.2" "$label" "$ranks" || failures=$((failures + 1))
}

all_reduce_row() { # ranks on each host, algorithm, columns or auto, precision
    local columns=()
    [[ $3 == auto ]] || columns=(--set "communication.torus_columns=$3")
    traffic_row "$@" $((count * $1)) --config "$root/scripts/hosts/traffic.yaml" "${columns[@]}" \
        --set "communication.algorithm=$2" --set "communication.precision=$4"
}

statistics_row() { # ranks on each host
    traffic_row "$1" statistics auto fp32 $((count * $1)) --config "$root/scripts/hosts/traffic.yaml" \
        --set "training.batch_norm_samples=$((count * $1))"
}

# The ranks of a host hold the same pipeline stage and divide its samples.
pipeline_row() { # ranks on each host
    traffic_row "$1" pipeline - fp32 $((16 * $1)) --config "$root/configs/smoke.yaml" \
        --set bagging.M=1 --set bagging.sampler=none --set bagging.out_of_bag=false \
        --set parallel.mode=pipeline --set "parallel.data_degree=$1" --set parallel.micro_batches=2 \
        --set device.kind=cpu --set run.audit_steps=0 --set data.synthetic_validation_samples=8
}

traffic_rows() {
    local precision
    echo "bytes per step from the host that sends the most to other hosts"
    echo "hosts  algorithm     cols  prec    formula    counted   measured    ratio   retx   ms/step"
    for precision in fp32 bf16 fp16 int8; do
        all_reduce_row 1 all_reduce auto "$precision"
        all_reduce_row 1 torus_2d auto "$precision"
        all_reduce_row 2 all_reduce auto "$precision"
        all_reduce_row 2 torus_2d 2 "$precision"     # rows are hosts
        all_reduce_row 2 torus_2d "$count" "$precision" # rows span hosts
        all_reduce_row 2 hierarchical auto "$precision"
    done
    statistics_row 1
    statistics_row 2
    pipeline_row 1
    pipeline_row 2
}

# Each host has two base models of one rank each, so that two groups share its disk.
staging_row() { # label, whether the bytes are copied or reused
    is_selected "$1" || return 0
    rows=$((rows + 1))
    if ! run_case "staging.$2" 2 --config "$root/configs/smoke.yaml" \
        --set "bagging.M=$((2 * count))" --set bagging.P_degree=1 --set data.kind=image_folder \
        --set "data.path=$scratch/pictures/train" --set "data.validation_path=$scratch/pictures/val" \
        --set data.staging=training --set "data.staging_directory=$scratch/disk" \
        --set training.batch_size=4 --set workload.classes=2; then
        echo "$1  FAILED: the run failed"
        failures=$((failures + 1))
        return
    fi
    python3 - "staging.$2" "$2" "$1" "${hosts[@]}" <<'END' || failures=$((failures + 1))
import json, pathlib, sys

run, source, label, *hosts = sys.argv[1:]
staging = json.load(open(run + "/result.json"))["staging"]
largest = sum(file.stat().st_size for file in pathlib.Path("pictures/train").rglob("*.*"))
disks = [sum(file.stat().st_size for file in pathlib.Path(host, "disk").rglob("pack-*")
             if file.suffix != ".index") for host in hosts]
other = "reused" if source == "copied" else "copied"
wrong = []
if staging[source + "_bytes"] != sum(disks): wrong.append("the bytes differ from the disks")
if staging[other + "_bytes"] != 0: wrong.append(f"{staging[other + '_bytes']} bytes {other}")
if staging["fullest_node_bytes"] != max(disks): wrong.append("fullest_node_bytes is not that of the fullest disk")
if not all(0 < disk < largest for disk in disks): wrong.append("a disk has no or all pictures")
print(f"{label}  {source} {staging[source + '_bytes']} bytes of {staging['files']} files;"
      f" on the disks {' + '.join(map(str, disks))} of {largest} each ",
      "FAILED: " + ", ".join(wrong) if wrong else "passed")
sys.exit(bool(wrong))
END
}

staging_rows() {
    is_selected "staging" || return 0
    "$program" data generate photographs --output pictures --classes 2 --training-per-class 16 \
        --validation-per-class 4 --size 64 >pictures.log
    staging_row "staging" copied
    staging_row "staging again" reused
}

traffic_rows
staging_rows
((rows)) || usage_error "--only: no row contains '$only'"
echo "$rows rows, $failures failed, $SECONDS s."
((failures == 0))
