#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/attacks.sh [--only ROW[,ROW...]] [PROGRAM]
# Forges results and provokes accidents against a built program, by default build/release/hpcai500, on a small
# generated data set. For each attack it prints a row with the exit codes of `hpcai500 verify` and
# scripts/verify_result, and the expected outcome:
#   caught          both verifiers reject the forgery (exit code 10). If `hpcai500 score` already rejects it, the
#                   column `verify` has the exit code of `score`
#   only with data  both accept it; `verify --data`, with `--replay` where steps were invented, rejects it
#   no check can    both accept it, as docs/METRICS.md states
#   other words     the outcome that the row itself checks, such as the exit code of `run`
# Needs mpirun, python3 and gcc; some rows need root. Takes minutes on two cores.
#   --only ROW      only the rows of these names, such as F4 or paths
# Keeps and prints the folder with the files of failed rows. Exit code: 0 every row is as expected, 1 one is not,
# 2 usage.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/usage.sh
usage_on_request scripts/attacks.sh "$@"
source scripts/mpi_environment.sh

usage_error() {
    echo "attacks.sh: $1" >&2
    exit 2
}

only="" program=build/release/hpcai500
while (($#)); do
    case $1 in
        --only)
            (($# >= 2)) || usage_error "$1 needs a value"
            only=$2
            shift
            ;;
        -*) usage_error "unknown option '$1'; --help lists all" ;;
        *) program=$1 ;;
    esac
    shift
done
[[ -f $program && -x $program ]] || usage_error "$program does not exist"
mpi_environment 4 >/dev/null
exec python3 scripts/attacks/attacks.py "$(realpath "$program")" "$only"
