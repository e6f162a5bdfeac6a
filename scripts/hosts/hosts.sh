# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced. Creates several hosts on one machine: network namespaces with their own name, address, shared
# memory and local disk, connected by links of limited rate through a switch. The namespaces end with
# the script. If the script is killed (-9), its scratch folder and the control groups of shares.sh
# stay. Use in this order:
#     enter_private_namespaces "$@"      # runs the script again in new namespaces; needs root
#     start_hosts COUNT RATE             # host0, host1, ...; RATE in the format of tc, such as 100mbit
#     run_on_hosts RANKS COMMAND...      # mpirun with RANKS ranks on each host
# After start_hosts, $scratch is a folder that all hosts share, and $scratch/disk is local to each host.

hosts_folder=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
# shellcheck source=scripts/hosts/shares.sh
source "$hosts_folder/shares.sh"

fail_with() { # exit code, message
    echo "${0##*/}: $2" >&2
    exit "$1"
}

check_namespaces() {
    local tool missing=()
    ((EUID == 0)) || fail_with 3 "only root can create network namespaces"
    for tool in ip tc unshare nsenter setpriv mpirun python3; do
        [[ -n $(type -P "$tool") ]] || missing+=("$tool")
    done
    ((${#missing[@]} == 0)) ||
        fail_with 3 "not found: ${missing[*]} (iproute2, util-linux, openmpi-bin, python3)"
    unshare --mount --net --pid --fork --mount-proc true 2>/dev/null ||
        fail_with 3 "this system does not allow new namespaces (unshare)"
    unshare --net sh -ec 'ip link add bridge0 type bridge
        ip link add name eth0 type veth peer name eth1
        tc qdisc add dev eth0 root tbf rate 1mbit burst 256kb latency 200ms' >/dev/null 2>&1 ||
        fail_with 3 "this system has no bridges, veth links or token buckets (tbf) for network namespaces"
}

# The first call runs the calling script again as the first process of new namespaces, which end with
# that process, and exits with its code. In the namespaces the function only returns.
enter_private_namespaces() {
    if (($$ == 1)) && [[ -d ${HPCAI500_SCRATCH:-} ]]; then
        scratch=$HPCAI500_SCRATCH
        return
    fi
    check_namespaces
    local code=0
    child=""
    HPCAI500_SCRATCH=""
    trap leave_namespaces EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    HPCAI500_SCRATCH=$(mktemp -d -t hpcai500.XXXXXX)
    export HPCAI500_SCRATCH
    setpriv --pdeathsig KILL unshare --mount --net --pid --fork --kill-child --mount-proc \
        bash "$(readlink -f "$0")" "$@" </dev/null &
    child=$!
    wait "$child" || code=$?
    child=""
    exit "$code"
}

# A second Ctrl-C must not interrupt the cleanup.
leave_namespaces() {
    local first="" tries
    trap '' INT TERM HUP
    if [[ -n $child ]]; then
        first=$(cat "/proc/$child/task/$child/children" 2>/dev/null) || true
        kill -KILL "$child" 2>/dev/null || true
        wait "$child" 2>/dev/null || true
        # unshare --kill-child also kills the first process of the namespaces, which exists until all
        # their other processes have ended.
        for ((tries = 0; tries < 100; ++tries)); do
            [[ -n $first && -e /proc/${first% } ]] || break
            sleep 0.05
        done
    fi
    [[ -n $HPCAI500_SCRATCH ]] || return 0
    remove_shares "${HPCAI500_SCRATCH##*/}" || true
    rm -rf "$HPCAI500_SCRATCH"
}

# Makes hosts and their links. A host's outgoing traffic is limited at the host, its incoming traffic
# at the switch.
start_hosts() { # count, rate
    local count=$1 rate=$2 host peer index
    ((count <= 250)) || fail_with 2 "expected at most 250 hosts, got $count"
    mount -t tmpfs tmpfs /run
    ip netns add switch
    ip -n switch link add bridge0 type bridge
    ip -n switch link set bridge0 up
    hosts=()
    echo "127.0.0.1 localhost" >"$scratch/hosts"
    for ((index = 0; index < count; ++index)); do
        host=host$index
        hosts+=("$host")
        echo "10.77.0.$((index + 1)) $host" >>"$scratch/hosts"
        mkdir -p "$scratch/$host/disk" "$scratch/$host/tmp"
        ip netns add "$host"
        ip -n "$host" link set lo up
        ip link add name eth0 netns "$host" type veth peer name "to_$host" netns switch
        ip -n switch link set "to_$host" master bridge0
        ip -n switch link set "to_$host" up
        ip -n "$host" addr add "10.77.0.$((index + 1))/24" dev eth0
        ip -n "$host" link set eth0 up
        for peer in "$host eth0" "switch to_$host"; do
            # shellcheck disable=SC2086  # two words
            set -- $peer
            tc -n "$1" qdisc add dev "$2" root tbf rate "$rate" burst 256kb latency 200ms ||
                fail_with 2 "tc rejects the rate '$rate'"
        done
    done
    mkdir -p "$scratch/disk"
    mount --bind "$scratch/hosts" /etc/hosts
}

run_on_hosts() { # ranks on each host, command...
    local ranks=$1 list
    shift
    list=$(printf "%s:$ranks," "${hosts[@]}")
    on_host "${hosts[0]}" env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive \
        mpirun --host "${list%,}" --map-by "ppr:$ranks:node" -np $((ranks * ${#hosts[@]})) \
        --bind-to none --mca plm_rsh_agent "$hosts_folder/on_host.sh" \
        --mca pml ob1 --mca btl tcp,vader,self --mca btl_tcp_if_include eth0 \
        --mca oob_tcp_if_include eth0 --mca mpi_yield_when_idle 1 "$@"
}

on_host() { "$hosts_folder/on_host.sh" "$1" "$(printf '%q ' "${@:2}")"; }

# Prints a line for each host: its name, bytes and packets sent, TCP segments retransmitted.
print_link_counters() {
    local host
    for host in "${hosts[@]}"; do
        echo "$host $(nsenter --net="/run/netns/$host" cat /proc/net/dev /proc/net/snmp | awk '
            $1 == "eth0:" { sent = $10 " " $11 }
            $1 == "Tcp:" { retransmitted = $13 }
            END { print sent, retransmitted }')"
    done
}
