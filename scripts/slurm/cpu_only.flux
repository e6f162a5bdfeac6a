#!/bin/bash
# Made by: hpcai500 sbatch --scheduler flux --config configs/quickstart.yaml --nodes 2 --ranks-per-node 2 --time 1:00:00
#flux: --job-name=quickstart
#flux: --nodes=2
#flux: --exclusive
#flux: --time-limit=3600s
set -u
hpcai500=("${HPCAI500:-hpcai500}")
if ! command -v "${hpcai500[0]}" >/dev/null; then
    echo "${hpcai500[0]}: command not found; load its module or set HPCAI500" >&2
    exit 2
fi

# A restarted job finds its result directory by job number or HPCAI500_RESULTS.
results=results/quickstart-$(flux getattr jobid | tr -cd '[:alnum:]')
results=${HPCAI500_RESULTS:-$results}
if [[ -e $results/config.yaml ]]; then
    command=(resume "$results")
else
    command=(run --config configs/quickstart.yaml --output "$results")
fi


# Prints a text that changes when a run writes its progress or summary.
output_state() {
    find "$results" \( -name summary.txt -o -name progress.json \) \
        -printf '%p %i %T@ ' 2>/dev/null
}
initial_state=$(output_state)
summary=$(stat -c %i.%Y "$results/summary.txt" 2>/dev/null)
# By default Flux ends all ranks 30 s after the first has ended.
job=$(flux submit -o exit-timeout=none -o cpu-affinity=per-task -o gpu-affinity=off \
    --exclusive --nodes=2 --ntasks=4 \
    "${hpcai500[@]}" "${command[@]}") || exit 1
flux job attach "$job" &
launcher=$!
# Every rank receives USR1 and stops at a checkpoint.
signalled=0
trap 'signalled=1; flux job kill --signal=USR1 "$job"' USR1
# If a rank was killed, the launcher may hang after all others have exited. This script
# kills it about a minute after a run has written its summary, or 10 to 20 s after a stop
# (code 8) or the failure of all groups (5).
has_stopped() {
    ((signalled)) && [[ $(output_state) != "$initial_state" ]] || return 1
    "${hpcai500[@]}" status "$results" >/dev/null 2>&1
    case $? in 5 | 8) return 0 ;; *) return 1 ;; esac
}
checks=6 checks_of_stop=1 next=0
while kill -0 "$launcher" 2>/dev/null; do
    sleep 10 &
    wait -n
    # A signal or the end of an earlier sleep may have ended the wait early.
    ((SECONDS >= next)) || continue
    next=$((SECONDS + 10))
    # The time limit comes 120 seconds later.
    ((signalled || SECONDS < 3480)) || kill -USR1 $$
    now=$(stat -c %i.%Y "$results/summary.txt" 2>/dev/null)
    if [[ -n $now && $now != "$summary" ]] && ((checks-- <= 0)); then kill "$launcher"; fi
    if has_stopped && ((checks_of_stop-- <= 0)); then kill "$launcher"; fi
done
wait "$launcher"
launched=$?
trap '' USR1

"${hpcai500[@]}" status "$results"
code=$?
# Code 8 (a stop) belongs to an earlier launch if this launch has written nothing.
if [[ $(output_state) == "$initial_state" ]] && ((launched != 0 || code == 8)); then
    echo "this launch has written no results; any status above is from an earlier launch" >&2
    code=$((launched != 0 ? launched : 1))
fi
exit $code
