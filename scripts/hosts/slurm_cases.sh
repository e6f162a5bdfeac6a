# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The cases of slurm_test.sh, which sources this file and sets its variables. Checks wait for conditions,
# not for fixed times. Timeouts are long, because other programs may use the machine.

cases=0 failures=0 timeout_seconds=1500 training=() reference=/nowhere
smoke=(--config "$root/configs/smoke.yaml" --set device.kind=cpu)
fits=(--nodes "$count" --ranks-per-node 2 --set bagging.P_degree="$count")

selected() {
    local pattern
    ((${#only[@]})) || return 0
    # shellcheck disable=SC2053  # a pattern
    for pattern in "${only[@]}"; do [[ $1 != $pattern ]] || return 0; done
    return 1
}

# Writes $case.sbatch with the program under test.
write_script() { # case, options of sbatch...
    "$program" sbatch "${@:2}" --results "$scratch/results/$1" >"$1.sbatch"
    ((!show)) || { echo "--- $1.sbatch" && cat "$1.sbatch"; }
}

# Prints the job's number.
submit() { # case, options...
    on_host "${hosts[0]}" sbatch --parsable "--output=$scratch/$1.log" "${@:2}" "$scratch/$1.sbatch"
}

wait_for() { # message for a timeout, command...
    local message=$1 began=$SECONDS
    shift
    while ! "$@"; do
        ((SECONDS - began < timeout_seconds)) || { note "after $timeout_seconds s $message" && return 1; }
        sleep 0.2
    done
}

note() { echo "$1" >>"$name.log"; } # a line of the case's log

# Prints the job's exit code, or 124 after a timeout.
code_at_end_of() { # job
    wait_for "the job has not ended" job_has_ended "$1" || { on_host "${hosts[0]}" scancel "$1" && echo 124 && return; }
    exit_code_of "$1"
}

# Prints whether the job's exit code and the last line of its log are as expected. Ignores Slurm's lines.
check_job() { # code, expected code, expected pattern of the line
    local line
    line=$(grep -v '^slurmstepd-' "$name.log" 2>/dev/null | tail -n 1) || true
    ((!show)) || { echo "--- $name.log" && cat "$name.log"; }
    cases=$((cases + 1))
    # shellcheck disable=SC2053  # a pattern
    if [[ $1 == "$2" && $line == $3 ]]; then
        printf '%-16s passed  exit code %s, %s s  %s\n' "$name" "$1" $((SECONDS - began)) "${line:0:130}"
    else
        printf '%-16s FAILED  exit code %s, expected %s; last line, expected %s:\n%s\n' "$name" "$1" "$2" "$3" "$line"
        tail -n 20 "$name.log" | cut -c1-200
        tail -n 12 "$scratch/slurm/log/slurmctld" | cut -c1-200
        failures=$((failures + 1))
    fi
}

run_case() { # case, expected code, pattern, options of sbatch...
    local name=$1 began=$SECONDS
    selected "$name" || return 0
    write_script "$name" "${@:4}"
    check_job "$(code_at_end_of "$(submit "$name")")" "$2" "$3"
}

both_run() { job_runs "$1" && job_runs "$2"; }

# Binds each rank to cores, so that two jobs share the nodes.
shared_case() { # launcher
    local name=shared_$1 began=$SECONDS first second cores others code line="no result"
    selected "$name" || return 0
    write_script "$name" "${smoke[@]}" "${fits[@]}" --cpus-per-rank 1 --launcher "$1"
    first=$(submit "$name" --partition=shared --output=/dev/null)
    second=$(submit "$name" --partition=shared)
    wait_for "the jobs do not run at the same time" both_run "$first" "$second" || true
    cores=$(cores_of "$first") others=$(cores_of "$second")
    code=$(($(code_at_end_of "$first") + $(code_at_end_of "$second")))
    ! grep -q "^RESULT CUSTOM .*M=2 P=$count " "$name.log" || line="a result"
    note "$line; two jobs at the same time, on cores $cores and $others of the same hosts"
    check_job "$code" 0 "a result; two jobs at the same time, on cores 0-1 and 2-3 of the same hosts"
}

# The folder `shipped` has small versions of the files that cpu_only.sbatch names.
shipped_case() { # case, further options of `hpcai500 sbatch`; without them the stored script
    local name=$1 began=$SECONDS script=$root/scripts/slurm/cpu_only.sbatch
    selected "$name" || return 0
    mkdir -p shipped/configs
    sed 's/P_degree: 1/P_degree: 2/; s/^device:/&\n  kind: cpu/' "$root/configs/smoke.yaml" >shipped/configs/quickstart.yaml
    cp "$script" "$name.sbatch"
    if (($# > 1)); then
        local line words
        line=$(sed -n 's/^# Made by: hpcai500 //p' "$script")
        read -ra words <<<"$line"
        (cd "$root" && "$program" "${words[@]}" "${@:2}") >"$name.sbatch"
    fi
    check_job "$(code_at_end_of "$(submit "$name" "--chdir=$scratch/shipped")")" 0 "RESULT CUSTOM *M=2 P=2 *"
}

# Prints "M=... P=... hosts=...;" for each result.
layouts_of() { # results
    python3 - "$1" <<'END'
import json, pathlib, sys
for result in sorted(pathlib.Path(sys.argv[1]).glob("*/result.json")):
    if result.parent.is_symlink():  # latest
        continue
    groups = [json.loads(file.read_text())["record"] for file in result.parent.glob("groups/*/record.json")]
    hosts = {host for group in groups for host in group["hosts"]}
    print(f"M={len(groups)} P={groups[0]['ranks']} hosts={len(hosts)}", end="; ")
print()
END
}

array_case() { # launcher
    local name=array_$1 began=$SECONDS job code=0 task
    selected "$name" || return 0
    write_script "$name" "${smoke[@]}" --nodes "$count" --ranks-per-node 2 --array M=1,2 --array P_degree=1,2 \
        --launcher "$1"
    job=$(submit "$name")
    for task in 0 1 2 3; do
        code=$((code + $(code_at_end_of "${job}_$task")))
    done
    note "$(layouts_of "results/$name" | tr ';' '\n' | sed 's/^ //' | grep . | sort | tr '\n' ';')"
    check_job "$code" 0 "M=1 P=1 hosts=1;M=1 P=2 hosts=1;M=2 P=1 hosts=1;M=2 P=2 hosts=2;"
}

# A script that replaces the program: `run` and `resume` wait for a signal; `status` reports the stop.
write_stub() {
    cat >stub.sh <<'END'
#!/bin/bash
case $1 in
    run) results=${*: -1} ;;
    *) results=$2 ;;
esac
rank=${OMPI_COMM_WORLD_RANK:-${SLURM_PROCID:-0}}
mkdir -p "$results/groups/0"
[[ $1 != status ]] || exit 8
trap 'echo "$command signalled" >>"$results/signalled.$rank"; touch "$results/groups/0/progress.json"; exit 0' USR1
command=$1
echo "$command" >>"$results/began.$rank"
touch "$results/config.yaml"
while :; do sleep 0.1; done
END
    chmod +x stub.sh
}

submit_stub() { HPCAI500=$scratch/stub.sh submit "$@"; }

# Returns whether at least $2 ranks have started.
has_begun() { (($(cat "$1"/began.* 2>/dev/null | wc -l) >= $2)); } # results, ranks

# Signals only the batch script, as Slurm does before the time limit (#SBATCH --signal=B:USR1@120).
signal_script() { on_host "${hosts[0]}" scancel --batch --signal=USR1 "$1"; }

# Prints how many ranks of each command were signalled.
signalled() { # results
    cat "$1"/signalled.* 2>/dev/null | sort | uniq -c | awk '{ printf "%s %s %s; ", $1, $2, $3 }'
}

restart_case() { # launcher
    local name=restart_$1 began=$SECONDS ranks=$((2 * count)) job results code
    selected "$name" || return 0
    write_stub
    write_script "$name" "${smoke[@]}" "${fits[@]}" --requeue 1 --launcher "$1"
    job=$(submit_stub "$name")
    results=$scratch/results/$name/smoke-$job
    wait_for "the job has not started" has_begun "$results" "$ranks" || true
    signal_script "$job"
    wait_for "the job was not requeued" has_left "$job" && start_requeued "$job"
    wait_for "the job has not restarted" has_begun "$results" $((2 * ranks)) || true
    signal_script "$job"
    code=$(code_at_end_of "$job")
    note "$(signalled "$results")"
    check_job "$code" 8 "$ranks resume signalled; $ranks run signalled; "
}

# Two array tasks at the same time, each on one host. Only task 1 is signalled.
one_task_case() {
    local name=one_task began=$SECONDS job first second
    selected "$name" || return 0
    write_stub
    write_script "$name" "${smoke[@]}" --nodes 1 --ranks-per-node 2 --array M=1,2 --requeue 1 --launcher srun
    job=$(submit_stub "$name" "--output=$scratch/$name.%a.log")
    wait_for "task 0 does not run" job_runs "${job}_0" || true
    wait_for "task 1 does not run" job_runs "${job}_1" || true
    first=$scratch/results/$name/smoke-$(job_field "${job}_0" JobId)
    second=$scratch/results/$name/smoke-$(job_field "${job}_1" JobId)
    wait_for "task 0 has not started" has_begun "$first" 1 || true
    wait_for "task 1 has not started" has_begun "$second" 2 || true
    signal_script "${job}_1"
    wait_for "task 1 was not requeued" has_left "${job}_1" || true
    note "task 0: $(job_field "${job}_0" JobState) $(signalled "$first"); task 1: $(signalled "$second")"
    on_host "${hosts[0]}" scancel "$job"
    check_job 0 0 "task 0: RUNNING ; task 1: 2 run signalled; "
}

# Prints where the interrupted run resumed, and whether its digests equal the uninterrupted run's.
compare_runs() { # result directories of both
    python3 - "$1" "$2" <<'END'
import json, pathlib, sys
def groups(folder):
    files = sorted(pathlib.Path(folder).glob("groups/*/record.json"))
    return [json.loads(file.read_text()) for file in files]
resumed, reference = (groups(folder) for folder in sys.argv[1:])
same = len(resumed) > 0 and [g["training_digest"] for g in resumed] == [g["training_digest"] for g in reference]
same = same and all(len(g["training_digest"]) == 64 for g in resumed)
steps = " and ".join(",".join(str(c["step"]) for c in g["record"]["continuations"]) for g in resumed)
print(f"the run resumed at steps {steps}; {'the same' if same else 'OTHER'} digests")
END
}

seconds_of() { # result directory
    sed -n 's/.*"training_seconds": \([0-9]*\).*/\1/p' "$1/groups/0/record.json"
}

# Trains without a stop, once for all cases. The run must be long enough for two stops, because ranks
# check for signals only once a second.
train_reference() {
    local name=reference epochs=4 job
    [[ ! -e reference.sbatch ]] || return 0
    while true; do
        training=("${smoke[@]}" "${fits[@]}" --set run.deterministic=true --set "workload.epochs=$epochs")
        write_script reference "${training[@]}"
        job=$(submit reference)
        [[ $(code_at_end_of "$job") == 0 ]] || return 0
        reference=$scratch/results/reference/smoke-$job
        (($(seconds_of "$reference") < 30 && epochs < 1000)) || return 0
        epochs=$((4 * epochs))
    done
}

is_training() { grep -q '"state": "training"' "$1"/groups/0/progress.json 2>/dev/null; }

# Waits for the end of a job and checks its exit code, its restarts, where it resumed, and its digests.
check_resumed_job() { # job, results, restarts, steps of group 1 if they differ from group 0
    local code steps='[1-9]*,'
    code=$(code_at_end_of "$1")
    steps=$(printf "$steps%.0s" $(seq "$3"))
    note "Restarts=$(job_field "$1" Restarts), $(compare_runs "$2" "$reference")"
    check_job "$code" 0 "Restarts=$3, the run resumed at steps ${steps%,} and ${4:-${steps%,}}; the same digests"
}

stopped_case() { # launcher
    local name=stopped_$1 began job results
    selected "$name" || return 0
    train_reference
    began=$SECONDS
    write_script "$name" "${training[@]}" --requeue 2 --launcher "$1"
    job=$(submit "$name")
    results=$scratch/results/$name/smoke-$job
    for _ in 1 2; do
        wait_for "the job does not train" is_training "$results" || break
        signal_script "$job"
        wait_for "the job was not requeued" has_left "$job" && start_requeued "$job"
    done
    check_resumed_job "$job" "$results" 2
}

# Submits a job to the partition with priority, so that it takes all hosts of the given job.
preempt() { # job
    local other
    other=$(on_host "${hosts[0]}" sbatch --parsable --partition=main --nodes="$count" --exclusive \
        --output=/dev/null --wrap 'sleep 3')
    wait_for "the job has not left its hosts" has_left "$1" || true
    wait_for "the other job has not ended" job_has_ended "$other" || true
    [[ $(exit_code_of "$other") == 0 ]] || note "the other job failed"
    start_requeued "$1"
}

preempted_case() { # launcher, name
    local name=$2_$1 began job results
    selected "$name" || return 0
    train_reference
    began=$SECONDS
    write_script "$name" "${training[@]}" --requeue 2 --launcher "$1"
    job=$(submit "$name" --partition=spare)
    results=$scratch/results/$name/smoke-$job
    wait_for "the job does not train" is_training "$results" || true
    preempt "$job"
    # Without a signal to the script, mpirun may end before Slurm requeues the job, and kill a group
    # before it stops.
    if [[ $name == unannounced_mpirun && $(code_at_end_of "$job") == 6 ]]; then
        check_job 6 6 "STATUS @(RUNNING|UNFINISHED)  groups=2 *"
    else
        check_resumed_job "$job" "$results" 1
    fi
}

# Afterwards Slurm sends SIGTERM to the job steps, and no signal to the script.
send_no_user_signal() {
    sed -i '/^SlurmctldParameters=/d' "$SLURM_CONF"
    on_host "${hosts[0]}" scontrol reconfigure
}

# Returns whether each group has a complete checkpoint. A rank starts its second checkpoint only after
# all ranks have completed the first.
has_checkpoints() { # results
    local group
    for group in 0 1; do
        (($(find "$1/checkpoints/$group" -name '*.done' 2>/dev/null | wc -l) > count)) || return 1
    done
}

# Slurm requeues the job at once, without a signal to the script.
evicted_case() { # launcher
    local name=evicted_$1 began job results
    selected "$name" || return 0
    train_reference
    began=$SECONDS
    write_script "$name" "${training[@]}" --set run.checkpoint_steps=2 --requeue 2 --launcher "$1"
    job=$(submit "$name" --partition=graceless)
    results=$scratch/results/$name/smoke-$job
    wait_for "no complete checkpoint exists" has_checkpoints "$results" || true
    preempt "$job"
    check_resumed_job "$job" "$results" 1
}

# Writes a wrapper that runs the program and kills rank HPCAI500_VICTIM of a `run` after a step of
# group 1.
write_killer() {
    cat >killer.sh <<'END'
#!/bin/bash
"$HPCAI500_WRAPPED" "$@" &
child=$!
trap 'kill -USR1 $child' USR1
if [[ $1 == run && ${OMPI_COMM_WORLD_RANK:-$SLURM_PROCID} == "$HPCAI500_VICTIM" ]]; then
    until grep -q '"step": [1-9]' "${*: -1}"/groups/1/progress.json 2>/dev/null; do sleep 0.1; done
    kill -9 $child
fi
wait $child
code=$?
while kill -0 $child 2>/dev/null; do  # a signal ended the wait
    wait $child
    code=$?
done
exit $code
END
    chmod +x killer.sh
}

submit_killer() { # world rank, case
    HPCAI500=$scratch/killer.sh HPCAI500_WRAPPED=$program HPCAI500_VICTIM=$1 submit "$2"
}

dead_case() { # launcher
    local name=dead_$1 began=$SECONDS
    selected "$name" && ((long)) || return 0
    write_killer
    write_script "$name" "${smoke[@]}" --nodes 2 --launcher "$1" --set workload.epochs=4
    check_job "$(code_at_end_of "$(submit_killer 1 "$name")")" 7 "RESULT PARTIAL *"
}

has_failed() { grep -q '"state": "failed"' "$1"/groups/1/progress.json 2>/dev/null; }

# Kills a rank that shares its node with another rank. Under mpirun the other group is then stopped,
# and the requeued job resumes both groups. Under srun, Slurm's PMIx plugin ends all ranks.
lost_rank_case() { # launcher
    local name=lost_rank_$1 began job results
    selected "$name" || return 0
    train_reference
    began=$SECONDS
    write_killer
    write_script "$name" "${training[@]}" --requeue 2 --launcher "$1"
    job=$(submit_killer "$count" "$name")
    results=$scratch/results/$name/smoke-$job
    if [[ $1 == srun ]]; then
        check_job "$(code_at_end_of "$job")" 6 "STATUS @(RUNNING|UNFINISHED) *"
        return
    fi
    wait_for "the dead rank has not been detected" has_failed "$results" || true
    signal_script "$job"
    wait_for "the job was not requeued" has_left "$job" && start_requeued "$job"
    check_resumed_job "$job" "$results" 1 0
}

all_cases() {
    local launcher nowhere=(--set data.kind=image_folder --set data.path=/nowhere --set data.validation_path=/nowhere)
    run_case mpirun 0 "RESULT CUSTOM *M=2 P=$count *" "${smoke[@]}" "${fits[@]}"
    run_case srun 0 "RESULT CUSTOM *M=2 P=$count *" "${smoke[@]}" "${fits[@]}" --launcher srun
    run_case refused 2 "*expected the result directory of a run, with its config.yaml*" "${smoke[@]}" "${fits[@]}" \
        "${nowhere[@]}"
    shipped_case shipped_mpirun
    shipped_case shipped_srun --launcher srun
    one_task_case
    for launcher in mpirun srun; do
        shared_case "$launcher"
        array_case "$launcher"
        restart_case "$launcher"
        stopped_case "$launcher"
        preempted_case "$launcher" preempted
        evicted_case "$launcher"
        dead_case "$launcher"
        lost_rank_case "$launcher"
    done
    send_no_user_signal
    preempted_case mpirun unannounced
    preempted_case srun unannounced
}
