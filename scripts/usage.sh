# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced. usage_on_request SCRIPT ARGUMENT...: if an argument is -h or --help, it prints the comment
# at the head of SCRIPT and ends the script.

usage_on_request() {
    local script=$1 argument
    shift
    for argument; do
        [[ $argument == -h || $argument == --help ]] || continue
        awk 'NR > 2 { if (!/^#/) exit; if (/^# shellcheck/) next; sub(/^# ?/, ""); print }' "$script"
        exit 0
    done
}
