# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced. Makes several hosts on one machine: network namespaces with their own name, address, shared
# memory and local disk, connected by links of limited rate through a switch. The namespaces end with
# the script. If the script is killed (-9), its scratch folder and the control groups of shares.sh
# stay. Use in this order:
#     enter_private_world "$@"           # runs the script again, inside; needs root
#     start_hosts COUNT RATE             # host0, host1, ...; RATE as tc has it, such as 100mbit
#     run_on_hosts RANKS COMMAND...      # mpirun with so many ranks on each host
# After start_hosts, $world is a scratch folder that all hosts see, $world/disk is each host's own.

hosts_folder=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
# shellcheck source=scripts/hosts/shares.sh
source "$hosts_folder/shares.sh"

world_fails() { # exit code, message
    echo "${0##*/}: $2" >&2
    exit "$1"
}

check_world_is_possible() {
    local tool missing=()
    ((EUID == 0)) || world_fails 3 "needs root, which alone may make network namespaces"
    for tool in ip tc unshare nsenter setpriv mpirun python3; do
        [[ -n $(type -P "$tool") ]] || missing+=("$tool")
    done
    ((${#missing[@]} == 0)) ||
        world_fails 3 "not found: ${missing[*]} (iproute2, util-linux, openmpi-bin, python3)"
    unshare --mount --net --pid --fork --mount-proc true 2>/dev/null ||
        world_fails 3 "this system does not let namespaces be made (unshare)"
    unshare --net sh -ec 'ip link add bridge0 type bridge
        ip link add name eth0 type veth peer name eth1
        tc qdisc add dev eth0 root tbf rate 1mbit burst 256kb latency 200ms' >/dev/null 2>&1 ||
        world_fails 3 "this system has no bridges, veth links or token buckets (tbf) for network namespaces"
}

# The first call runs the calling script again as the first process of new namespaces, which end with
# that process, and exits with its code. In the namespaces the function only returns.
enter_private_world() {
    if (($$ == 1)) && [[ -d ${HPCAI500_WORLD:-} ]]; then
        world=$HPCAI500_WORLD
        return
    fi
    check_world_is_possible
    local code=0
    inside=""
    HPCAI500_WORLD=""
    trap end_world EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    HPCAI500_WORLD=$(mktemp -d -t hpcai500.XXXXXX)
    export HPCAI500_WORLD
    setpriv --pdeathsig KILL unshare --mount --net --pid --fork --kill-child --mount-proc \
        bash "$(readlink -f "$0")" "$@" </dev/null &
    inside=$!
    wait "$inside" || code=$?
    inside=""
    exit "$code"
}

# A second Ctrl-C must not interrupt the cleanup.
end_world() {
    local first="" tries
    trap '' INT TERM HUP
    if [[ -n $inside ]]; then
        first=$(cat "/proc/$inside/task/$inside/children" 2>/dev/null) || true
        kill -KILL "$inside" 2>/dev/null || true
        wait "$inside" 2>/dev/null || true
        # Also kills the first process of the namespaces, which exists until all others have ended.
        for ((tries = 0; tries < 100; ++tries)); do
            [[ -n $first && -e /proc/${first% } ]] || break
            sleep 0.05
        done
    fi
    [[ -n $HPCAI500_WORLD ]] || return 0
    remove_shares "${HPCAI500_WORLD##*/}" || true
    rm -rf "$HPCAI500_WORLD"
}

# Makes hosts and their links. A host's outgoing traffic is limited at the host, its incoming traffic
# at the switch.
start_hosts() { # count, rate
    local count=$1 rate=$2 host peer index
    ((count <= 250)) || world_fails 2 "$count hosts are more than the 250 that get addresses"
    mount -t tmpfs tmpfs /run
    ip netns add switch
    ip -n switch link add bridge0 type bridge
    ip -n switch link set bridge0 up
    hosts=()
    echo "127.0.0.1 localhost" >"$world/hosts"
    for ((index = 0; index < count; ++index)); do
        host=host$index
        hosts+=("$host")
        echo "10.77.0.$((index + 1)) $host" >>"$world/hosts"
        mkdir -p "$world/$host/disk" "$world/$host/tmp"
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
                world_fails 2 "'$rate' is no rate that tc takes"
        done
    done
    mkdir -p "$world/disk"
    mount --bind "$world/hosts" /etc/hosts
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
            $1 == "Tcp:" { again = $13 }
            END { print sent, again }')"
    done
}
