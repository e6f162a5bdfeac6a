# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced. Limits each rank to the same share of a core, by its own control group (cgroup version 1 or
# 2, whichever has the CPU controller). The ranks have a greater weight than other programs, but these
# may still disturb measurements, so use idle cores. Needs root.

# Prints the folder for control groups that limit CPU time; nothing if there is none.
cgroup_root() {
    if [[ -w /sys/fs/cgroup/cpu/cpu.cfs_quota_us || -w /sys/fs/cgroup/cpu/cgroup.procs ]]; then
        echo /sys/fs/cgroup/cpu
    elif grep -qsw cpu /sys/fs/cgroup/cgroup.subtree_control; then
        echo /sys/fs/cgroup
    fi
}

# Makes a control group for each rank below shares_folder. A failure must end the script, because
# ranks would otherwise run without limits.
make_shares() { # name, ranks, share of a core
    local root folder rank period=10000 quota
    root=$(cgroup_root)
    [[ -n $root ]] || { echo "shares.sh: this system has no control groups that limit CPU time" >&2 && return 1; }
    quota=$(awk -v share="$3" -v period=$period 'BEGIN { printf "%d", share * period }')
    ((quota >= 1000)) || { echo "shares.sh: the minimum share of a core is 0.1, not $3" >&2 && return 1; }
    folder=$root/$1
    mkdir -p "$folder"
    [[ ! -e $folder/cgroup.subtree_control ]] || echo +cpu >"$folder/cgroup.subtree_control"
    if [[ -e $folder/cpu.weight ]]; then
        echo 1600 >"$folder/cpu.weight"
    else
        echo 16384 >"$folder/cpu.shares"
    fi
    for ((rank = 0; rank < $2; ++rank)); do
        mkdir -p "$folder/rank$rank"
        if [[ -e $folder/rank$rank/cpu.max ]]; then
            echo "$quota $period" >"$folder/rank$rank/cpu.max"
        else
            echo "$period" >"$folder/rank$rank/cpu.cfs_period_us"
            echo "$quota" >"$folder/rank$rank/cpu.cfs_quota_us"
        fi
    done
    # shellcheck disable=SC2034  # for the caller
    shares_folder=$folder
}

# Removes the groups after their processes have ended. Waits up to five seconds for that.
remove_shares() { # name
    local root folder tries
    root=$(cgroup_root)
    folder=$root/$1
    [[ -n $root && -d $folder ]] || return 0
    for ((tries = 0; tries < 50; ++tries)); do
        find "$folder" -depth -type d -exec rmdir {} + 2>/dev/null && return
        sleep 0.1
    done
    echo "shares.sh: $folder is still in use" >&2
}
