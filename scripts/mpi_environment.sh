# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced. mpi_environment RANKS exports what Open MPI's mpirun needs on this machine and prints it:
# permission to run as root and to run more ranks than there are cores, and time for checkpoints.

mpi_environment() {
    local ranks=$1 cores
    if ((EUID == 0)); then
        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
        echo "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1  # root"
    fi
    # mpirun counts cores, not their hardware threads.
    cores=$(lscpu --parse=CORE,SOCKET 2>/dev/null | grep -v '^#' | sort -u | wc -l)
    ((cores > 0)) || cores=1
    if ((cores < ranks || $(nproc) < ranks)); then
        export OMPI_MCA_rmaps_base_oversubscribe=1
        echo "export OMPI_MCA_rmaps_base_oversubscribe=1  # $ranks ranks on $cores cores"
    fi
    # After Ctrl-C, and after every error of a rank, Open MPI 4 waits for this number of seconds, sends
    # SIGTERM, waits again for this number and kills the ranks. Every error costs both waits.
    export OMPI_MCA_odls_base_sigkill_timeout=${OMPI_MCA_odls_base_sigkill_timeout:-3}
    echo "export OMPI_MCA_odls_base_sigkill_timeout=$OMPI_MCA_odls_base_sigkill_timeout" \
        " # Ctrl-C: seconds for a checkpoint; \`kill -USR1 PID_OF_MPIRUN\` has no limit"
}
