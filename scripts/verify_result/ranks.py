# SPDX-License-Identifier: Apache-2.0
"""ranks.csv of a group against its steps, its places and its time_breakdown."""
import re

from arithmetic import known, median, nearest_rank, total
from steps import ROUNDING_SECONDS, phases_of, step_seconds
from tables import PHASES, format_number

SPREAD = ("minimum", "median", "p99", "maximum")
WORK_PHASES = PHASES[:3]  # input wait, forward, backward
STRAGGLER_RATIO = 1.2


def stragglers_of(group, ranks):
    """Ranks of one stage whose work, of the phases that all know, takes more than 1.2 times the median."""
    phases = [phase for phase in WORK_PHASES if all(getattr(rank, phase) is not None for rank in ranks)]
    if len(ranks) < 2:
        return []
    works = [total(getattr(rank, phase) for phase in phases) for rank in ranks]
    middle, found = median(works), []
    for rank, work in zip(ranks, works):
        if not middle or work / middle <= STRAGGLER_RATIO:
            continue
        excess = [getattr(rank, phase) - median([getattr(other, phase) for other in ranks])
                  for phase in phases]
        slowest = phases[excess.index(max(excess))].removesuffix("_seconds")
        found.append({"group": group, "group_rank": rank.group_rank, "world_rank": rank.world_rank,
                      "host": rank.host, "phase": slowest, "ratio": work / middle})
    return found


class RanksCheck:
    def __init__(self, run, group, ranks, folder):
        self.run, self.findings = run, run.findings
        self.group, self.ranks = group, ranks
        self.name, self.record_name = folder + "ranks.csv", folder + "record.json"
        self.steps_name = folder + "steps.csv"

    def check(self, steps):
        if len(self.ranks) != self.group["ranks"]:
            self.findings.add(self.name, f"has {len(self.ranks)} ranks; must have {self.group['ranks']}")
            return
        for number in range(len(self.ranks)):
            self.check_place(number)
        if steps:
            self.check_leader(steps)
        self.check_breakdown()
        if self.run.config["parallel.mode"] not in ("pipeline", "mixed"):
            self.compare("stragglers", self.group["time_breakdown"]["stragglers"],
                         stragglers_of(self.group["group"], self.ranks))

    def compare(self, key, stored, wanted):
        self.findings.must_be(self.record_name, "record.time_breakdown." + key, stored, wanted, self.name)

    def check_place(self, number):
        place = next(row for row in self.run.places_of(self.group["group"])
                     if row["group_rank"] == number)
        host = re.sub('[^!-~]|[,"]', "_", place["host"].encode().decode("latin-1"))
        for key, wanted in (("group_rank", number), ("world_rank", place["world_rank"]),
                            ("host", host), ("steps", self.group["iterations"])):
            stored = getattr(self.ranks[number], key)
            if stored != wanted:
                self.findings.add(self.name, f"{key} of rank {number} is {stored}; must be {wanted}")

    def check_leader(self, steps):
        """The row of the rank that has stored the steps."""
        for phase in PHASES:
            values = known(getattr(step, phase) for step in steps)
            self.compare_leader(phase, total(values) / len(values) if values else None, 0)
        if any(step.input_wait_seconds is None for step in steps):
            return  # the phases are from a GPU's clock, which does not measure whole steps
        begins = [not index or steps[index - 1].epoch != step.epoch for index, step in enumerate(steps)]
        lengths = sorted(phases_of(step) if begin else length
                         for step, begin, length in zip(steps, begins, step_seconds(steps)))
        for column, wanted in (("median_step_seconds", median(lengths)),
                               ("p99_step_seconds", nearest_rank(lengths, 0.99)),
                               ("longest_step_seconds", lengths[-1])):
            self.compare_leader(column, wanted, ROUNDING_SECONDS)

    def compare_leader(self, column, wanted, allowed):
        stored = getattr(self.ranks[0], column)
        if stored == wanted or (None not in (stored, wanted) and abs(stored - wanted) <= allowed):
            return
        self.findings.add(self.name, f"{column} of rank 0 is {format_number(stored)}; "
                                      f"must be {format_number(wanted)}, according to {self.steps_name}")

    def check_breakdown(self):
        stored = self.group["time_breakdown"]
        for column in (*PHASES, "overlapped_communication_seconds"):
            name, values = column.removesuffix("_seconds"), [getattr(rank, column) for rank in self.ranks]
            spread = (None,) * len(SPREAD)
            if values and None not in values:
                values.sort()
                spread = values[0], median(values), nearest_rank(values, 0.99), values[-1]
            for key, value in zip(SPREAD, spread):
                self.compare(f"{name}.{key}", stored[name][key], value)
        medians = [rank.median_step_seconds for rank in self.ranks]
        self.compare("step_seconds", stored["step_seconds"], None if None in medians else median(medians))
