#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: on_host.sh HOST COMMAND...
# Runs a command line on a host of hosts.sh, as ssh would on a real host. mpirun uses it as its launch
# agent. The host has its own name, network, semaphores, /dev/shm, temporary files and $scratch/disk.
set -euo pipefail
while [[ ${1:-} == -* ]]; do shift; done
host=${1:?on_host.sh: no host}
shift
export HPCAI500_HOST=$host HPCAI500_HOST_COMMAND="$*"
# shellcheck disable=SC2016  # the inner shell expands
exec nsenter --net="/run/netns/$host" unshare --uts --ipc --mount bash -euc '
    hostname "$HPCAI500_HOST"
    mount -t tmpfs tmpfs /dev/shm
    mount --bind "$HPCAI500_SCRATCH/$HPCAI500_HOST/disk" "$HPCAI500_SCRATCH/disk"
    export TMPDIR=$HPCAI500_SCRATCH/$HPCAI500_HOST/tmp
    command=$HPCAI500_HOST_COMMAND
    unset HPCAI500_HOST HPCAI500_HOST_COMMAND
    exec bash -c "$command"'
