#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Periodically write the used fraction of each rank's share of a core: mean and minimum over ranks.

FOLDER has a control group rank0, rank1, ... for each rank, created by scripts/hosts/shares.sh. A rank
that waits for others polls, which counts as use, like the waiting kernels of a GPU. The script
measures from the start of the last rank to the first end of a rank.
"""
import argparse
import os
import pathlib
import time


def counted_seconds(group):
    """CPU time that the control group counts, in seconds; None if it counts none."""
    if (group / "cpuacct.usage").exists():  # version 1, if cpuacct is in this hierarchy
        return int((group / "cpuacct.usage").read_text()) / 1e9
    for line in (group / "cpu.stat").read_text().splitlines():
        if line.startswith("usage_usec "):  # version 2
            return int(line.split()[1]) / 1e6
    return None


def processor_seconds(group):
    """CPU seconds of all processes of a control group; None if it has no process."""
    processes = (group / "cgroup.procs").read_text().split()
    counted = counted_seconds(group)
    if processes and counted is not None:
        return counted
    ticks = None
    for process in processes:
        try:
            fields = pathlib.Path("/proc", process, "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            continue
        ticks = (ticks or 0) + int(fields[11]) + int(fields[12])
    return None if ticks is None else ticks / os.sysconf("SC_CLK_TCK")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("ranks", type=int)
    parser.add_argument("share", type=float)
    parser.add_argument("seconds", type=float)
    parser.add_argument("output", type=pathlib.Path)
    arguments = parser.parse_args()
    groups = [arguments.folder / f"rank{rank}" for rank in range(arguments.ranks)]
    begin = last = time.monotonic()
    previous = None
    with open(arguments.output, "w", encoding="utf-8") as output:
        output.write("seconds\tmean\tleast\n")
        while True:
            now, used = time.monotonic(), [processor_seconds(group) for group in groups]
            if None not in used:
                if previous is None:
                    begin = now
                else:
                    fractions = [(seconds - earlier) / ((now - last) * arguments.share)
                                 for seconds, earlier in zip(used, previous)]
                    mean = sum(fractions) / len(fractions)
                    output.write(f"{now - begin:.2f}\t{mean:.4f}\t{min(fractions):.4f}\n")
                    output.flush()
                previous, last = used, now
            elif previous is not None:
                return
            time.sleep(arguments.seconds)


if __name__ == "__main__":
    main()
