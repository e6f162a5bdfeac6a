#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Starts Slurm on virtual hosts of this machine and runs the scripts of `hpcai500 sbatch` in it.
# --help has the details.
set -euo pipefail
root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
# shellcheck source=scripts/hosts/hosts.sh
source "$root/scripts/hosts/hosts.sh"
# shellcheck source=scripts/hosts/slurm.sh
source "$root/scripts/hosts/slurm.sh"

usage() {
    cat <<'END'
Usage: scripts/slurm_test.sh [--hosts N] [--only PATTERN]... [--long] [--install] [--show] [--keep DIR]
                             [--program FILE]

Creates N hosts (default 2, 2 to 8) on this machine as scripts/multihost_test.sh does, starts Slurm on
them with its own configuration, and submits the scripts of `hpcai500 sbatch`. A case passes if the
job's exit code and the last line of its log are as expected. In some cases the test appends that line,
with what it has observed.
ctest runs the cases mpirun and srun if it can.

  mpirun, srun    a run on all hosts
  refused         a run that is rejected at its start
  shared_*        two jobs at the same time on the same hosts, each on its own cores
  shipped_*       scripts/slurm/cpu_only.sbatch, and the same for srun, with a small configs/quickstart.yaml
  array_*         tasks for M x P_degree, on no more hosts than needed for their ranks
  restart_*       a job is stopped, requeued, resumed and stopped again until it has no restarts left;
                  a script in place of the program records the signals
  one_task        one task of an array of two such jobs is signalled; the other is not affected
  stopped_*       a run that is stopped twice ends with the digests of an uninterrupted run
  preempted_*     a job of a partition with priority takes the hosts of a run, which stops, is requeued
                  and ends with the digests of an uninterrupted run
  unannounced_*   the same at a site without preempt_send_user_signal
  evicted_*       the same without a grace time: the run is killed and resumes from its latest
                  checkpoint
  dead_*          the only rank of a group is killed (-9), so that the result is PARTIAL. Only with --long,
                  because the leader of the other group waits ten minutes for the dead rank
  lost_rank_*     the first rank of a group on the second host is killed (-9). Under mpirun the others
                  are then stopped; after the requeue, the run ends with the digests of an
                  uninterrupted run. Under srun, Slurm's PMIx plugin ends all ranks

  --only PATTERN  only cases whose name matches, such as srun or '*_srun'; may be repeated
  --install       installs Debian's slurm-wlm and munge if they are missing, without starting them,
                  and ends
  --show          prints each script and log
  --keep DIR      copies scripts, logs and results of the jobs and the logs of Slurm there
  --program FILE  default build/release/hpcai500

Needs root. Only installed packages remain. Exit code: 0 all cases passed, 1 some failed, 2 usage,
77 Slurm cannot run here.
END
}

usage_error() {
    echo "slurm_test.sh: $1" >&2
    exit 2
}

skip() {
    echo "slurm_test.sh: skipped: $1"
    exit 77
}

is_integer() { [[ $1 =~ ^[1-9][0-9]{0,3}$ ]] && (($1 >= $2 && $1 <= $3)); }

arguments=("$@")
count=2 only=() long=0 install=0 show=0 keep="" program=$root/build/release/hpcai500
while (($#)); do
    case $1 in
        --help | -h) usage && exit ;;
        --long) long=1 ;;
        --install) install=1 ;;
        --show) show=1 ;;
        --hosts | --only | --keep | --program)
            (($# >= 2)) || usage_error "$1 needs a value"
            case $1 in
                --hosts) count=$2 ;;
                --only) only+=("$2") ;;
                --keep) keep=$(realpath -m "$2") ;;
                --program) program=$(realpath -m "$2") ;;
            esac
            shift
            ;;
        *) usage_error "unknown option '$1'; --help lists all" ;;
    esac
    shift
done
is_integer "$count" 2 8 || usage_error "--hosts: expected an integer from 2 to 8, got '$count'"
((install)) || [[ -f $program && -x $program ]] || usage_error "$program does not exist; scripts/build.sh builds it"

if (($$ != 1)); then
    ((EUID == 0)) || skip "only root can create hosts and run Slurm's daemons"
    # The check of hosts.sh calls exit with 3.
    reason=$( (check_namespaces) 2>&1) || skip "${reason#*: }"
    ((!install)) || install_slurm
    lacking=$(missing_of_slurm)
    [[ -z $lacking ]] ||
        skip "not found: $lacking (Debian's slurm-wlm and munge, which --install installs)"
    ((!install)) || exit 0
fi
enter_private_namespaces "${arguments[@]}"
start_hosts "$count" 1gbit
start_slurm || { echo "slurm_test.sh: Slurm has not started:" && tail -n 5 "$scratch"/slurm/log/* && exit 1; }
cd "$scratch"

# Slurm's daemons pass this environment to all steps.
export HPCAI500=$program OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_WAIT_POLICY=passive
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,vader,self OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_btl_tcp_if_include=eth0 OMPI_MCA_oob_tcp_if_include=eth0

# shellcheck source=scripts/hosts/slurm_cases.sh
source "$root/scripts/hosts/slurm_cases.sh"
all_cases
[[ -z $keep ]] || { mkdir -p "$keep" && cp -r ./*.sbatch ./*.log results slurm/log "$keep"; }
((cases)) || usage_error "--only: no case matches '${only[*]}'"
echo "$cases cases, $failures failed, $SECONDS s; Slurm $(sinfo --version | cut -d ' ' -f 2) on $count hosts."
((failures == 0))
