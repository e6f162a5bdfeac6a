# SPDX-License-Identifier: Apache-2.0
"""The lines of groups/<m>/trials.jsonl, which are hostile until checked."""
import hashlib
import json
import re

from findings import MalformedFile
from json_reader import canonical_float, layout_of_json, reject_constant, unique_keys

MAX_LINE_BYTES, MAX_COUNT, MAX_NUMBER, MAX_DRAW = 4 << 20, 2**50, 2**31 - 1, 100
SECONDS = ("begin_seconds", "end_seconds", "proposing_seconds", "building_seconds", "training_seconds",
           "evaluating_seconds")
ID = {"group": int, "sequence": int}
PROPOSED = {"schema": "hpcai500-trial-proposed/1", "previous": str, "sequence": int, "parent": ID,
            "edits": [{"kind": str, "node": str, "end": str, "amount": int}],
            "hyper_parameters": [{"name": str, "value": float}], "draw": int, "missing": [ID], "seen": [int],
            "memory_bytes": int}
FINISHED = {"schema": "hpcai500-trial-finished/1", "previous": str, "sequence": int, "state": str, "reason": str,
            "accuracy": [float], "epoch_seconds": [float], **dict.fromkeys(SECONDS, float),
            "samples_trained": int, "samples_evaluated": int,
            "flops": [{"ledger": str, "training": int, "evaluation": int}], "digest": str}


def has_form(value, form):
    """Whether a JSON value has the keys of `form`, in their order, and values of its types."""
    if isinstance(form, dict):
        return (isinstance(value, dict) and list(value) == list(form)
                and all(has_form(value[key], part) for key, part in form.items()))
    if isinstance(form, list):
        return isinstance(value, list) and all(has_form(part, form[0]) for part in value)
    if isinstance(form, str):
        return value == form
    return type(value) is form


def is_count(value, most=MAX_COUNT):
    return 0 <= value <= most


def is_id(value):
    return is_count(value["group"], MAX_NUMBER) and is_count(value["sequence"], MAX_NUMBER)


def is_possible_proposal(row):
    return (is_count(row["sequence"], MAX_NUMBER) and is_count(row["draw"], MAX_DRAW)
            and is_count(row["memory_bytes"])
            and (is_id(row["parent"]) or row["parent"]["group"] == row["parent"]["sequence"] == -1)
            and all(map(is_id, row["missing"])) and all(map(is_count, row["seen"])))


def has_possible_epochs(row):
    ends = [row["begin_seconds"], *row["epoch_seconds"], row["end_seconds"]]
    return (len(row["accuracy"]) == len(row["epoch_seconds"]) and ends == sorted(ends)
            and all(0 <= value <= 1 for value in row["accuracy"]))


def is_possible_end(row):
    samples = row["samples_trained"], row["samples_evaluated"]
    counts = [row["sequence"], *samples]
    counts += [number for ledger in row["flops"] for number in (ledger["training"], ledger["evaluation"])]
    if not (all(map(is_count, counts)) and all(row[key] >= 0 for key in SECONDS) and has_possible_epochs(row)):
        return False
    if row["state"] == "failed":
        return not row["accuracy"] and samples == (0, 0)
    return row["state"] == "completed" and row["accuracy"] and re.fullmatch("[0-9a-f]{64}", row["digest"])


class Trial:
    def __init__(self, proposed):
        self.proposed, self.finished = proposed, None

    @property
    def accuracy(self):
        return self.finished["accuracy"]

    def has_completed(self):
        return bool(self.finished and self.finished["state"] == "completed")

    def flops(self, ledger):
        row = next((row for row in self.finished["flops"] if row["ledger"] == ledger), None)
        if row is None:
            raise MalformedFile(f"a trial has no FLOPs of the ledger {ledger}")
        return row["training"], row["evaluation"]

    def work_of_epoch(self):
        training, evaluation = self.flops("aiperf")
        epochs, finished = float(len(self.accuracy)), self.finished
        return (float(training) * float(finished["samples_trained"]) / epochs
                + float(evaluation) * float(finished["samples_evaluated"]) / epochs)


class Lines:
    """A proposed and a finished line for each trial of a group, chained by their hashes."""

    def __init__(self, files, group, is_finished):
        self.name, self.group, self.trials = f"groups/{group}/trials.jsonl", group, []
        self.lines, self.last = 0, "0" * 64
        if not is_finished and self.name not in files.present:
            return
        *lines, rest = files.text(self.name).split("\n")
        if rest and is_finished:
            raise MalformedFile(f"{self.name}: its last line is incomplete")
        for line in lines:
            self.add(line)
        if is_finished and self.lines % 2:
            files.findings.add(self.name, f"trial {self.lines // 2}: has not finished")

    def fail(self, number, text):
        raise MalformedFile(f"{self.name}: line {number}: {text}")

    def parse(self, line, form, is_possible):
        number = self.lines + 1
        if len(line.encode()) > MAX_LINE_BYTES:
            self.fail(number, f"has more than {MAX_LINE_BYTES} bytes")
        try:
            row = json.loads(line, parse_float=canonical_float, object_pairs_hook=unique_keys,
                             parse_constant=reject_constant)
            is_as_written = layout_of_json(line, separators=(",", ":")) == line
        except (ValueError, RecursionError, MalformedFile) as error:
            self.fail(number, error)
        if not is_as_written:
            self.fail(number, "is not as the program writes it")
        if not has_form(row, form):
            self.fail(number, "lacks a key or has a value of a wrong type")
        if not is_possible(row):
            self.fail(number, "has a value that is out of range")
        return row

    def add(self, line):
        is_proposal = self.lines % 2 == 0
        row = self.parse(line, *((PROPOSED, is_possible_proposal) if is_proposal else (FINISHED, is_possible_end)))
        if row["previous"] != self.last:
            self.fail(self.lines + 1, "'previous' is not the SHA-256 of the line before")
        if row["sequence"] != self.lines // 2:
            self.fail(self.lines + 1, f"sequence: expected {self.lines // 2}, got {row['sequence']}")
        if is_proposal:
            self.check_seen(row["seen"])
            self.trials.append(Trial(row))
        else:
            self.trials[-1].finished = row
        self.lines += 1
        self.last = hashlib.sha256(line.encode()).hexdigest()

    def check_seen(self, seen):
        if len(seen) <= self.group or seen[self.group] != self.lines:
            self.fail(self.lines + 1, f"seen[{self.group}]: expected the {self.lines} lines of the file before")
        before = self.trials[-1].proposed["seen"] if self.trials else seen
        if len(before) != len(seen) or any(now < then for now, then in zip(seen, before)):
            self.fail(self.lines + 1, "seen: expected at least the lines of the trial before")

    def done(self):
        return [trial for trial in self.trials if trial.has_completed()]


class LinesCheck:
    """The facts of the lines that concern several groups. Raises MalformedFile."""

    def __init__(self, histories, has_own_history, most_edits):
        """`most_edits` are those that a proposal adds to its parent's."""
        self.histories, self.has_own_history, self.most_edits = histories, has_own_history, most_edits

    def check(self):
        for history in self.histories:
            for trial in history.trials:
                fault = self.fault_of(history, trial.proposed)
                if fault:
                    history.fail(2 * trial.proposed["sequence"] + 1, fault)
        self.check_order()

    def has_seen_end(self, trial, seen):
        group = trial["group"]
        return 0 <= group < len(seen) and 2 * trial["sequence"] + 2 <= seen[group]

    def fault_of(self, history, proposed):
        seen, parent, inherited, missing = proposed["seen"], proposed["parent"], [], proposed["missing"]
        if len(seen) != len(self.histories):
            return f"seen: expected {len(self.histories)} numbers, got {len(seen)}"
        for group, other in enumerate(self.histories):
            if seen[group] > other.lines:
                return f"seen[{group}]: expected at most {other.lines}, got {seen[group]}"
            if self.has_own_history and group != history.group and seen[group]:
                return f"seen[{group}]: expected 0 with search.history own, got {seen[group]}"
        if parent["group"] >= 0:
            if not self.has_seen_end(parent, seen):
                return f"parent: trial {parent['sequence']} of group {parent['group']} had not finished"
            source = self.histories[parent["group"]].trials[parent["sequence"]]
            if not source.has_completed():
                return f"parent: trial {parent['sequence']} of group {parent['group']} has failed"
            inherited = source.proposed["edits"]
        if proposed["edits"][:len(inherited)] != inherited:
            return "edits: expected those of the parent first"
        if len(proposed["edits"]) > len(inherited) + self.most_edits:
            return f"edits: expected at most {len(inherited) + self.most_edits}, got {len(proposed['edits'])}"
        different = {(trial["group"], trial["sequence"]) for trial in missing}
        if len(different) < len(missing) or not all(self.has_seen_end(trial, seen) for trial in missing):
            return "missing: expected different trials that had finished"
        return None

    def check_order(self):
        """Replays all proposals such that each comes after those that it has seen."""
        replayed = [0] * len(self.histories)  # trials
        waiting = [[] for _ in self.histories]  # (trials needed, group that waits)
        ready, blocked = list(range(len(self.histories))), {}
        while ready:
            group = ready.pop()
            while replayed[group] < len(self.histories[group].trials):
                seen = self.histories[group].trials[replayed[group]].proposed["seen"]
                other = next((other for other in range(blocked.get(group, 0), len(seen))
                              if (seen[other] + 1) // 2 > replayed[other]), None)
                if other is not None:
                    blocked[group] = other
                    waiting[other].append(((seen[other] + 1) // 2, group))
                    break
                blocked[group] = 0
                replayed[group] += 1
                ready += [row[1] for row in waiting[group] if row[0] <= replayed[group]]
                waiting[group] = [row for row in waiting[group] if row[0] > replayed[group]]
        for group, history in enumerate(self.histories):
            if replayed[group] < len(history.trials):
                history.fail(2 * replayed[group] + 1,
                             f"seen[{blocked[group]}]: these lines include one that depends on this one")
