#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Starts a Slurm of its own on hosts made of this machine and runs the scripts of `hpcai500 sbatch`
# under it. --help says more.
set -euo pipefail
root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
# shellcheck source=scripts/hosts/hosts.sh
source "$root/scripts/hosts/hosts.sh"
# shellcheck source=scripts/hosts/slurm.sh
source "$root/scripts/hosts/slurm.sh"

usage() {
    cat <<'END'
Usage: scripts/slurm_test.sh [--hosts N] [--only TEXT] [--long] [--install] [--show] [--program FILE]

Makes N hosts (default 2, 2 to 8) on this machine as scripts/multihost_test.sh does, starts munged,
slurmctld and a slurmd on each, with a configuration of its own, and submits what `hpcai500 sbatch`
writes. A case passes where the job's exit code and the last line of its log are what they must be.

  mpirun      a run over all hosts
  srun        the same, started by srun --mpi=pmix
  array       M x P_degree, a job each
  refused     a run that may not start
  restart     a job that is told to stop, is requeued, resumes, and is told again until its restarts
              are used up; in place of the program a script that writes down what it is told
  stopped     a training that is told to stop twice ends with the digests of one that was not
  dead        a rank is killed (-9): the other group's result is PARTIAL; with --long only, as its
              leader waits ten minutes for the dead one's

  --only TEXT     only cases whose name contains TEXT
  --install       installs Debian's slurm-wlm and munge where they are missing, without starting them
  --show          prints each script and log
  --program FILE  default build/release/hpcai500

Needs root. Leaves nothing behind but packages. Exit code: 0 all cases passed, 1 some did not,
2 usage, 77 Slurm cannot be run here.
END
}

fails() {
    echo "slurm_test.sh: $1" >&2
    exit 2
}

skips() {
    echo "slurm_test.sh: skipped: $1"
    exit 77
}

is_integer() { [[ $1 =~ ^[1-9][0-9]{0,3}$ ]] && (($1 >= $2 && $1 <= $3)); }

arguments=("$@")
count=2 only="" long=0 install=0 show=0 program=$root/build/release/hpcai500
while (($#)); do
    case $1 in
        --help | -h) usage && exit ;;
        --long) long=1 ;;
        --install) install=1 ;;
        --show) show=1 ;;
        --hosts | --only | --program)
            (($# >= 2)) || fails "$1 needs a value"
            case $1 in
                --hosts) count=$2 ;;
                --only) only=$2 ;;
                --program) program=$(realpath -m "$2") ;;
            esac
            shift
            ;;
        *) fails "unknown option '$1'; --help lists all" ;;
    esac
    shift
done
is_integer "$count" 2 8 || fails "--hosts: expected an integer from 2 to 8, got '$count'"
[[ -f $program && -x $program ]] || fails "$program is not there; scripts/build.sh makes it"

if (($$ != 1)); then
    ((EUID == 0)) || skips "only root can make hosts and run Slurm's daemons"
    # The check of hosts.sh exits by itself, with 3.
    why=$( (check_world_is_possible) 2>&1) || skips "${why#*: }"
    ((!install)) || install_slurm
    lacking=$(missing_of_slurm)
    [[ -z $lacking ]] ||
        skips "not found: $lacking (Debian's slurm-wlm and munge, which --install installs)"
fi
enter_private_world "${arguments[@]}"
start_hosts "$count" 1gbit
start_slurm || { echo "slurm_test.sh: Slurm does not start:" && tail -n 5 "$world"/slurm/log/* && exit 1; }
cd "$world"

# Slurm's daemons take what they find here to all steps.
export HPCAI500=$program OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_WAIT_POLICY=passive
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,vader,self OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_btl_tcp_if_include=eth0 OMPI_MCA_oob_tcp_if_include=eth0

cases=0 failures=0 patience=120
smoke=(--config "$root/configs/smoke.yaml" --set device.kind=cpu)
selected() { [[ -z $only || $1 == *"$only"* ]]; }

# $case.sbatch, by the program under test.
write_script() { # case, options of sbatch...
    "$program" sbatch "${@:2}" --results "$world/results/$1" >"$1.sbatch"
    ((!show)) || { echo "--- $1.sbatch" && cat "$1.sbatch"; }
}

# Waits for the end of the job, or a while; its exit code is that of the job, its log $case.log.
submit() { # case, options...
    local code=0
    timeout "$patience" "$hosts_folder/on_host.sh" "${hosts[0]}" \
        sbatch --wait --quiet "--output=$world/$1.log" "${@:2}" "$world/$1.sbatch" || code=$?
    if ((code == 124)); then
        echo "after $patience s there is no end" >>"$1.log"
        on_host "${hosts[0]}" scancel --user=root
    fi
    return "$code"
}

last_line() { tail -n 1 "$1" 2>/dev/null; }

# Says whether the job's code and the last line of its log are the expected ones.
judge() { # case, code, expected code, expected pattern of the line
    local line
    line=$(last_line "$1.log")
    ((!show)) || { echo "--- $1.log" && cat "$1.log"; }
    cases=$((cases + 1))
    # shellcheck disable=SC2053  # a pattern
    if [[ $2 == "$3" && $line == $4 ]]; then
        printf '%-10s passed  exit code %s  %s\n' "$1" "$2" "${line:0:110}"
    else
        printf '%-10s FAILED  exit code %s, expected %s; last line, expected %s:\n%s\n' "$1" "$2" "$3" "$4" "$line"
        tail -n 20 "$1.log" | cut -c1-200
        failures=$((failures + 1))
    fi
}

run_case() { # case, expected code, pattern, options of sbatch...
    local code=0
    selected "$1" || return 0
    write_script "$1" "${@:4}"
    submit "$1" || code=$?
    judge "$1" "$code" "$2" "$3"
}

normal_cases() {
    local fits=(--nodes "$count" --ranks-per-node 2 --set bagging.P_degree="$count")
    run_case mpirun 0 "RESULT CUSTOM *M=2 P=$count *" "${smoke[@]}" "${fits[@]}"
    run_case srun 0 "RESULT CUSTOM *M=2 P=$count *" "${smoke[@]}" "${fits[@]}" --launcher srun
    run_case refused 2 "*expected a result directory with its config.yaml*" "${smoke[@]}" \
        "${fits[@]}" --set data.kind=image_folder --set data.path=/nowhere --set data.validation_path=/nowhere
}

array_case() {
    local code=0 results
    selected array || return 0
    write_script array "${smoke[@]}" --nodes "$count" --ranks-per-node 2 --array M=1,2 --array P_degree=1,2
    submit array --array=0-3 || code=$?
    results=$(cat results/array/*/summary.txt | grep '^RESULT' | grep -o 'M=[0-9]* P=[0-9]*' | sort | tr '\n' ';')
    echo "$results" >>array.log
    judge array "$code" 0 "M=1 P=1;M=1 P=2;M=2 P=1;M=2 P=2;"
}

# In place of the program: `run` and `resume` wait to be told to stop, `status` says that they did.
write_stand_in() {
    cat >stand_in.sh <<'END'
#!/bin/bash
case $1 in
    run) results=${*: -1} ;;
    *) results=$2 ;;
esac
rank=${OMPI_COMM_WORLD_RANK:-${SLURM_PROCID:-0}}
mkdir -p "$results"
if [[ $1 == status ]]; then
    exit 8
fi
trap 'echo "$command told" >>"$results/told.$rank"; exit 0' USR1
command=$1
echo "$command" >>"$results/began.$rank"
touch "$results/config.yaml"
while :; do sleep 0.1; done
END
    chmod +x stand_in.sh
}

count_of() { cat "$1".* 2>/dev/null | wc -l; } # lines

wait_for() { # tenths of seconds, command...
    local tries=$1
    shift
    while ! "$@"; do
        ((tries-- > 0)) || return 1
        sleep 0.1
    done
}

has_begun() { (($(count_of "$results/began") >= $1)); } # by so many ranks

# Told as at the end of its time (#SBATCH --signal=B:USR1@120): the script alone.
tell() { on_host "${hosts[0]}" scancel --batch --signal=USR1 "$1"; }

restart_case() { # launcher
    local name=restart_$1 ranks=$((2 * count)) code=0 job
    selected "$name" || return 0
    write_stand_in
    write_script "$name" "${smoke[@]}" --nodes "$count" --ranks-per-node 2 --set bagging.P_degree="$count" \
        --requeue 1 --launcher "$1"
    job=$(HPCAI500=$world/stand_in.sh on_host "${hosts[0]}" sbatch --parsable --output="$world/$name.log" \
        "$world/$name.sbatch")
    results=$world/results/$name/smoke-$job
    wait_for 300 has_begun "$ranks" || echo "it does not begin" >>"$name.log"
    tell "$job"
    # Slurm lets a requeued job wait.
    wait_for 300 job_waits "$job" || echo "it is not requeued" >>"$name.log"
    on_host "${hosts[0]}" scontrol update "JobId=$job" StartTime=now || true
    wait_for 1500 has_begun $((2 * ranks)) || echo "it does not begin again" >>"$name.log"
    tell "$job"
    wait_for 300 job_has_ended "$job" || echo "it does not end" >>"$name.log"
    code=$(exit_code_of "$job")
    sort "$results"/told.* | uniq -c | awk '{ printf "%s %s %s; ", $1, $2, $3 }' >>"$name.log"
    echo >>"$name.log"
    judge "$name" "$code" 8 "$ranks resume told; $ranks run told; "
}

digests_of() { grep -h training_digest "$1"/groups/*/record.json; }

stopped_case() {
    local fits=(--nodes "$count" --ranks-per-node 2 --set bagging.P_degree="$count" --set workload.epochs=40
        --set run.deterministic=true) job code
    selected stopped || return 0
    if ! "$program" --help | grep -q '^  resume '; then
        echo "stopped    skipped: this program has no command \`resume\`"
        return 0
    fi
    write_script whole "${smoke[@]}" "${fits[@]}"
    submit whole || true
    write_script stopped "${smoke[@]}" "${fits[@]}" --requeue 2
    job=$(on_host "${hosts[0]}" sbatch --parsable --output="$world/stopped.log" "$world/stopped.sbatch")
    results=$world/results/stopped/smoke-$job
    for _ in 1 2; do
        wait_for 600 is_at_work "$job" || break
        sleep 2
        tell "$job"
        wait_for 600 job_waits "$job" || break
        on_host "${hosts[0]}" scontrol update "JobId=$job" StartTime=now || true
    done
    wait_for 1200 job_has_ended "$job" || true
    code=$(exit_code_of "$job")
    if [[ $(digests_of "$results") != "$(digests_of "$world"/results/whole/*)" ]]; then
        echo "the digests differ" >>stopped.log
    fi
    judge stopped "$code" 0 "RESULT CUSTOM *"
}

is_at_work() { grep -q '"state": "training"' "$results"/groups/*/progress.json 2>/dev/null; }

dead_case() { # launcher
    local name=dead_$1 code=0
    selected "$name" && ((long)) || return 0
    cat >mortal.sh <<'END'
#!/bin/bash
"$HPCAI500_MORTAL" "$@" &
child=$!
if [[ $1 == run && ${OMPI_COMM_WORLD_RANK:-$SLURM_PROCID} == 1 ]]; then
    until grep -q '"step": [1-9]' "${*: -1}"/groups/1/progress.json 2>/dev/null; do sleep 0.1; done
    kill -9 $child
fi
wait $child
END
    chmod +x mortal.sh
    write_script "$name" "${smoke[@]}" --nodes 2 --launcher "$1" --set workload.epochs=20
    patience=1200
    HPCAI500=$world/mortal.sh HPCAI500_MORTAL=$program submit "$name" || code=$?
    judge "$name" "$code" 7 "RESULT PARTIAL *"
}

normal_cases
array_case
restart_case mpirun
restart_case srun
stopped_case
dead_case mpirun
dead_case srun
((cases)) || fails "--only: no case contains '$only'"
echo "$cases cases, $failures failed, $SECONDS s; Slurm $(sinfo --version | cut -d ' ' -f 2) on $count hosts."
((failures == 0))
