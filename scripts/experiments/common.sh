# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the scripts of this folder: options, runs of the program, and results.
# A script sets `description` and calls in this order: option..., parse_options, enter_private_namespaces (if it
# needs hosts), prepare, start_hosts or start_locally, limit_ranks, measure..., draw.
set -euo pipefail
shopt -s inherit_errexit
root=$(dirname "$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")")
experiments=$root/scripts/experiments
figure=$(basename "$0" .sh)
# shellcheck source=scripts/hosts/hosts.sh
source "$root/scripts/hosts/hosts.sh"
# shellcheck source=scripts/mpi_environment.sh
source "$root/scripts/mpi_environment.sh"

declare -A options=([output]="" [program]="$root/build/release/hpcai500")
declare -A legal=([output]='.*' [program]='.+')
description="" option_list=""
# shellcheck disable=SC2034  # for the scripts that source this one
rank_counts='[1-9][0-9]?( [1-9][0-9]?)*'
# shellcheck disable=SC2034
small_number='[1-9][0-9]?[0-9]?'
# shellcheck disable=SC2034  # numbers of epochs; the first epoch does not count
two_or_more='[2-9]|[1-9][0-9][0-9]?'
# shellcheck disable=SC2034
divisors_of_32='1|2|4|8' # ranks that share the batch of configs/quickstart.yaml
# shellcheck disable=SC2034
share_of_core='0\.[1-9][0-9]*|1|1\.0'
one_setting='[a-z_]+\.[A-Za-z_]+=[A-Za-z0-9_.+-]+'
# shellcheck disable=SC2034
setting_list="($one_setting( $one_setting)*)?"
# shellcheck disable=SC2034
link_rate='[1-9][0-9]*[kmg]bit'
# shellcheck disable=SC2034
workloads='image_classification|extreme_weather'
# shellcheck disable=SC2034
image_side='3[2-9]|[4-9][0-9]|1[0-9][0-9]'

# Declares an option.
option() { # name, default, pattern of its legal values, name of the value, meaning
    options[$1]=$2 legal[$1]=$3
    option_list+=$(printf '  --%-16s %s (%s)' "$1 $4" "$5" "${2:-none}")$'\n'
}

usage() {
    cat <<END
Usage: scripts/experiments/$figure.sh [--OPTION VALUE]...

$description

Options, with their defaults:
$option_list  --output DIR       new folder (results/$figure-<UTC time>)
  --program FILE     the program (build/release/hpcai500)
END
}

usage_error() {
    echo "$figure.sh: $1" >&2
    exit 2
}

parse_options() {
    local name
    while (($#)); do
        [[ $1 != --help && $1 != -h ]] || { usage && exit; }
        name=${1#--}
        [[ $1 == --?* && -n ${options[$name]+there} ]] ||
            usage_error "unknown option '$1'; --help lists all"
        (($# >= 2)) || usage_error "$1 needs a value"
        [[ $2 =~ ^(${legal[$name]})$ ]] || usage_error "$1: '$2' is not legal; --help lists the legal values"
        options[$name]=$2
        shift 2
    done
    program=$(realpath -m "${options[program]}")
    [[ -f $program && -x $program ]] || usage_error "$program does not exist; scripts/build.sh builds it"
    results=$(realpath -m "${options[output]:-results/$figure-$(date -u +%Y%m%dT%H%M%SZ)}")
}

check_increasing() { # option, numbers
    local number before=0
    for number in $2; do
        ((number > before)) || usage_error "$1: '$2' is not in increasing order"
        before=$number
    done
}

# If the shares exceed the cores, ranks get less than their share, and not equally much.
check_shares() { # ranks, share
    local cores
    cores=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)
    awk -v ranks="$1" -v share="$2" -v cores="$cores" \
        'BEGIN { exit !(ranks * share <= cores + 1e-9) }' ||
        usage_error "--share: $1 ranks with $2 of a core each are more than this machine's $cores cores"
    ((EUID)) || [[ -n $(cgroup_root) ]] ||
        fail_with 3 "this system has no control groups that limit CPU time"
}

# Creates the results folder and stores the options of the runs.
prepare() {
    local name
    [[ ! -e $results ]] || usage_error "$results already exists"
    mkdir -p "$results/runs"
    for name in "${!options[@]}"; do printf '%s\t%s\n' "$name" "${options[$name]}"; done |
        sort >"$results/parameters.tsv"
    echo "$figure: results in $results"
}

# Instead of start_hosts: ranks run on this machine without root.
start_locally() {
    hosts=()
    scratch="" mpirun=""
    trap stop_locally EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    scratch=$(mktemp -d -t hpcai500.XXXXXX)
}

stop_locally() {
    trap '' INT TERM HUP
    if [[ -n $mpirun ]]; then
        kill "$mpirun" 2>/dev/null || true # also ends its ranks
        wait "$mpirun" 2>/dev/null || true
    fi
    [[ -z $scratch ]] || rm -rf "$scratch"
}

# Limits all ranks of the next measurement to a share of a core; an empty share means no limit.
limit_ranks() { # ranks, share
    share=()
    if [[ -n $2 ]]; then
        make_shares "${scratch##*/}" "$1" "$2"
        share=("$hosts_folder/in_share.sh" "$shares_folder")
    fi
}

# One run, stored as runs/NAME.json; NAME is key=value,key=value.
measure() { # name, ranks on each host, options of the program...
    local name=$1 ranks=$2 load begin=$SECONDS
    shift 2
    [[ ! -e $results/runs/$name.json ]] || usage_error "$name is given twice"
    load=$(cut -d' ' -f1 /proc/loadavg)
    local command=("${share[@]}" "$program" run --output "$scratch/run" "$@")
    rm -rf "$scratch/run"
    if ((${#hosts[@]})); then
        run_on_hosts "$ranks" "${command[@]}"
    else
        mpi_environment "$ranks" >/dev/null
        # In the background, so that a signal is handled at once.
        env OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive \
            mpirun --bind-to none -np "$ranks" "${command[@]}" &
        mpirun=$!
        wait "$mpirun"
    fi >"$scratch/log" 2>&1 </dev/null || {
        mpirun=""
        tail -n 20 "$scratch/log" >&2
        echo "$figure.sh: the run $name failed" >&2
        exit 1
    }
    mpirun=""
    cp "$scratch/run/result.json" "$results/runs/$name.json"
    printf '%s\t%s\t%s\n' "$name" "$load" $((SECONDS - begin)) >>"$results/runs.tsv"
    printf '%-46s %4d s  load before %s\n' "$name" $((SECONDS - begin)) "$load"
}

draw() { python3 "$experiments/figures.py" "$figure" "$results"; }

# Sets `speed`: options of a short run that measures speed, not quality. No bootstrap sample is drawn,
# and an epoch has few steps. The result is the time of the epochs after the first.
set_speed_options() { # workload, steps of an epoch, epochs, samples of a rank in a step, ranks of a model
    local batch=$(($4 * $5))
    case $1 in
        image_classification)
            speed=(--config "$root/configs/smoke.yaml" --set workload.image_size=48)
            ;;
        extreme_weather)
            speed=(--config "$root/configs/extreme_weather_quickstart.yaml"
                --set workload.image_size=64 --set workload.image_width=96
                --set training.warmup_epochs=0 --set training.learning_rate=0.0001
                --set data.decoded_cache_mib=64)
            ;;
    esac
    speed+=(--set "workload.epochs=$3" --set "training.batch_size=$batch" --set device.kind=cpu
        --set training.schedule=constant --set bagging.sampler=none --set bagging.out_of_bag=false
        --set device.threads=1 --set "data.synthetic_samples=$(($2 * batch))"
        --set "data.synthetic_validation_samples=$5" --set run.audit_steps=0
        --set "bagging.P_degree=$5")
}

# Synthetic photographs of 8 classes, visible to all hosts.
make_photographs() { # training photographs per class, side in pixels
    "$program" data generate photographs --output "$scratch/photographs" --classes 8 \
        --training-per-class "$1" --validation-per-class 25 --size "$2" >"$scratch/log"
    # shellcheck disable=SC2034  # for the caller
    photographs=(--config "$root/configs/quickstart.yaml" --set "data.path=$scratch/photographs/train"
        --set "data.validation_path=$scratch/photographs/val" --set device.kind=cpu)
}
