# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced after hosts.sh. Runs Slurm on the hosts of start_hosts; it ends with them.
# After start_slurm, SLURM_CONF is set, and sbatch, srun and scontrol work on each host (on_host).

missing_of_slurm() {
    local tool missing=()
    for tool in munged munge slurmctld slurmd sbatch srun scontrol sinfo; do
        [[ -n $(PATH=$PATH:/usr/sbin type -P "$tool") ]] || missing+=("$tool")
    done
    echo "${missing[*]}"
}

# The file $policy keeps Debian from starting the daemons of a new package. It is always removed.
install_slurm() (
    policy=/usr/sbin/policy-rc.d new=()
    [[ -n $(missing_of_slurm) ]] && command -v apt-get >/dev/null || exit 0
    if [[ ! -e $policy ]]; then
        trap 'rm -f "$policy"' EXIT
        trap 'exit 130' INT
        trap 'exit 143' TERM HUP
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod +x "$policy"
    fi
    for unit in munge slurmctld slurmd; do
        [[ -e /lib/systemd/system/$unit.service ]] || new+=("$unit")
    done
    apt-get update -q >/dev/null || true
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
        slurm-wlm munge slurm-wlm-basic-plugins >/dev/null || exit 0
    # The daemons must not start at the next boot either.
    systemctl disable "${new[@]}" >/dev/null 2>&1 || true
)

# Starts Munge with a new key for this test.
start_munge() {
    install -d -o munge -g munge -m 755 /run/munge
    install -d -o munge -g munge -m 700 /run/munge/private
    (umask 077 && head -c 128 /dev/urandom >/run/munge/private/key)
    chown munge:munge /run/munge/private/key
    runuser -u munge -- /usr/sbin/munged --key-file=/run/munge/private/key \
        --log-file=/run/munge/private/log --seed-file=/run/munge/private/seed \
        --origin=127.0.0.1 --pid-file=/run/munge/munged.pid --socket=/run/munge/munge.socket.2
}

write_slurm_configuration() { # folder
    local host
    cat <<END
ClusterName=hpcai500
SlurmctldHost=${hosts[0]}(10.77.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=/run/munge/munge.socket.2
StateSaveLocation=$1/state
SlurmdSpoolDir=$1/spool/%n
TmpFS=$scratch/%n/tmp
SlurmctldPidFile=$1/slurmctld.pid
SlurmdPidFile=$1/slurmd.%n.pid
SlurmctldLogFile=$1/log/slurmctld
SlurmdLogFile=$1/log/slurmd.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=pmix
ReturnToService=2
SwitchType=switch/none
SchedulerParameters=batch_sched_delay=0,sched_interval=1
SlurmdTimeout=300
KillWait=5
MinJobAge=3600
SlurmdParameters=config_overrides
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=EXCLUSIVE \\
    PriorityTier=2 PreemptMode=OFF
PartitionName=spare Nodes=ALL MaxTime=INFINITE State=UP OverSubscribe=EXCLUSIVE PriorityTier=1 GraceTime=90
PartitionName=graceless Nodes=ALL MaxTime=INFINITE State=UP OverSubscribe=EXCLUSIVE PriorityTier=1
PartitionName=shared Nodes=ALL MaxTime=INFINITE State=UP OverSubscribe=NO PriorityTier=2 PreemptMode=OFF
END
    for host in "${hosts[@]}"; do
        echo "NodeName=$host NodeAddr=10.77.0.$((${host#host} + 1)) CPUs=4 Boards=1" \
            "SocketsPerBoard=1 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=1000 State=UNKNOWN"
    done
}

idle_hosts() { on_host "${hosts[0]}" sinfo --noheader --states=idle --format=%D 2>/dev/null; }

# Returns false if not all hosts become available.
start_slurm() {
    local folder=$scratch/slurm host tries
    export PATH=$PATH:/usr/sbin SLURM_CONF=$folder/slurm.conf
    mkdir -p "$folder/state" "$folder/log"
    for host in "${hosts[@]}"; do mkdir -p "$folder/spool/$host"; done
    write_slurm_configuration "$folder" >"$SLURM_CONF"
    start_munge
    on_host "${hosts[0]}" slurmctld -f "$SLURM_CONF"
    for host in "${hosts[@]}"; do on_host "$host" slurmd -f "$SLURM_CONF" -N "$host"; done
    for ((tries = 0; tries < 120; ++tries)); do
        [[ $(idle_hosts) != "${#hosts[@]}" ]] || return 0
        sleep 0.25
    done
    return 1
}

job_field() { # job, field
    on_host "${hosts[0]}" scontrol show job --oneliner "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"
}

ended='COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL|PREEMPTED'
job_is() { [[ $(job_field "$1" JobState) =~ ^($2)$ ]]; } # job, states as A|B
job_waits() { job_is "$1" PENDING; }
job_runs() { job_is "$1" RUNNING; }
has_left() { job_is "$1" "PENDING|$ended"; } # the job has left its hosts
job_has_ended() { job_is "$1" "$ended"; }
cores_of() { # job that runs; prints such as 0-1, once if all hosts have the same cores
    on_host "${hosts[0]}" scontrol show job --details --oneliner "$1" | tr ' ' '\n' |
        sed -n 's/^CPU_IDs=//p' | sort -u | paste -s -d ' '
}
exit_code_of() { job_field "$1" ExitCode | cut -d : -f 1; }

# Slurm delays a requeued job by two minutes; this starts it after 3 s. Earlier it might fail, because a
# node rejects a job in the second in which the job last ended there ("Job credential revoked").
start_requeued() { # job, if it waits
    ! job_waits "$1" || on_host "${hosts[0]}" scontrol update "JobId=$1" StartTime=now+3
}
