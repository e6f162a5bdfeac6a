# SPDX-License-Identifier: Apache-2.0
"""The trials of an architecture search, and what a result states about them."""
import hashlib
import json
import math

from annealing import Networks
from arrays import read_npy
from configuration import is_search
from findings import MalformedFile
from network import LEDGERS, edited_network, memory_bytes
from proposals import dimensions, is_same, proposal
from trials import MAX_DRAW, Lines, LinesCheck

POINTS = 100  # of the curve
ROUNDING_SECONDS = 1e-6
ROUNDING = 1e-12  # relative, of regulated OPS: math libraries round a logarithm differently
MAX_PAUSE_SECONDS = 5.0  # until a group notices that search.duration_seconds are over
MAX_EPOCHS = 65536  # of a group
MAX_FAILURES = 20  # of a group's last trials; then its search ends
MOST_ANNEALED = 14  # edits that a proposal adds to its parent's with search.parent bayesian
NOT_SCORED = -1  # class of a sample that data.on_bad_sample skips
LABELS, NAMES = "evaluation/hold_out.npy", "evaluation/hold_out.txt"
SPENT = ("proposing", "building", "training", "evaluating")


def trial_epochs(config, sequence):
    epochs = json.loads(config["search.epochs"])
    return epochs[min(sequence, len(epochs) - 1)]


def trial_config(config, proposed):
    """The configuration with a trial's epochs and hyper-parameters."""
    changed = dict(config)
    changed["workload.epochs"] = str(trial_epochs(config, proposed["sequence"]))
    for row in proposed["hyper_parameters"]:
        if row["name"] not in ("learning_rate", "weight_decay"):
            raise MalformedFile(f"a trial has the hyper-parameter {row['name']}")
        changed["training." + row["name"]] = repr(row["value"])
    return changed


class History(Lines):
    """The trials of a group, and what its record states about them."""

    def best(self):
        best = None
        for trial in self.done():
            if best is None or trial.accuracy[-1] > best.accuracy[-1]:
                best = trial
        if best is None:
            raise MalformedFile(f"{self.name}: no trial has completed")
        return best

    def spent(self):
        done = self.done()
        parts = {key: plain_sum(trial.finished[key + "_seconds"] for trial in done) for key in SPENT}
        known = parts["proposing"] + parts["building"] + parts["training"] + parts["evaluating"]
        return {**parts, "other": max(0.0, self.last_trial()["end_seconds"] - known)}

    def last_trial(self):
        """The last one that completed or failed: failures at the end cost time, too."""
        return next(trial.finished for trial in reversed(self.trials) if trial.finished)

    def seconds(self):
        last = self.last_trial()
        return last["end_seconds"] if last["state"] == "failed" else last["epoch_seconds"][-1]

    def record(self):
        """The expected `search` of groups/<m>/record.json."""
        best, done = self.best(), self.done()
        return {"trials": len(done), "best": best.proposed["sequence"], "best_accuracy": best.accuracy[-1],
                "best_epochs": len(best.accuracy), "edits": best.proposed["edits"],
                "work": plain_sum(float(len(trial.accuracy)) * trial.work_of_epoch() for trial in done),
                "training_flops": plain_sum(float(trial.finished["samples_trained"])
                                            * float(trial.flops("table3")[0]) for trial in done),
                "seconds": self.seconds(), "spent": self.spent(),
                "history_sha256": self.last, "end_reason": self.end_reason()}

    def end_reason(self):
        """Why the search ended early: its last trials have failed. Empty if it did not."""
        last = [trial.finished for trial in self.trials[-MAX_FAILURES:]]
        if len(self.trials) <= MAX_FAILURES or any(not row or row["state"] != "failed" for row in last):
            return ""
        return f"its last {MAX_FAILURES} trials failed, at last because {last[-1]['reason']}"


def check_values(config, history, proposed):
    """Raises MalformedFile for other hyper-parameters than the search has, or impossible values."""
    rows, known = proposed["hyper_parameters"], dimensions(config)
    if len(rows) != len(known) or any(
            row["name"] != name or not low <= row["value"] <= high
            for row, (name, low, high, _) in zip(rows, known)):
        history.fail(2 * proposed["sequence"] + 1, "hyper_parameters: expected a value of each in its range")


def plain_sum(numbers):
    """Adds in order, as the program does; sum() of Python 3.12 does not."""
    result = 0.0
    for number in numbers:
        result += number
    return result


def regulated(ops, accuracy, samples):
    """An error below half a sample counts as half a sample."""
    return ops * -math.log(max(1 - accuracy, 0.5 / max(samples, 1)))


class SearchCheck:
    """Reads the histories of all groups. `histories` is empty for other workloads."""

    def __init__(self, run):
        self.run, self.config, self.histories = run, run.config, []
        self.networks = Networks(run.config)
        if not is_search(run.config):
            return
        rows = run.record["work"]["groups"]
        self.histories = [History(run.files, group, not row["failure"]) for group, row in enumerate(rows)]
        stored = run.record.get("search")
        self.hold_out = stored["hold_out_samples"] if stored else 0
        if stored:
            self.labels, _ = read_npy(run.files, LABELS, "i", (self.hold_out,))
            self.check_names()
        most = MOST_ANNEALED if self.config["search.parent"] == "bayesian" else 1
        LinesCheck(self.histories, self.config["search.history"] == "own", most).check()
        for history in self.histories:
            for trial in history.trials:
                self.check_proposal(history, trial)

    def fail(self, history, trial, text):
        self.run.findings.add(history.name, f"trial {trial.proposed['sequence']}: {text}")

    def check_names(self):
        classes = int(self.config["workload.classes"])
        if any(not 0 <= label < classes for label in self.labels):
            self.run.findings.add(LABELS, "has a label that is no class")
        *names, rest = self.run.files.text(NAMES).split("\n")
        if rest:
            self.run.findings.add(NAMES, "its last line is incomplete")
        elif len(names) != self.hold_out:
            self.run.findings.add(NAMES, f"has {len(names)} names; must have {self.hold_out}")
        share, before = float(self.config["search.hold_out"]), set()
        for name in names:
            if name in before:
                self.run.findings.add(NAMES, f"has '{name}' twice")
                return
            before.add(name)
            if int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) / 2**32 >= share:
                self.run.findings.add(NAMES, f"search.hold_out does not hold out '{name}'")
                return
        samples = len(names) + self.run.record["workload"]["training_samples"]
        if abs(len(names) - share * samples) > 10 * math.sqrt(share * (1 - share) * samples):
            self.run.findings.add(NAMES, f"has {len(names)} of {samples} samples; must have about "
                                         f"{share * samples}, according to search.hold_out")

    def refused_by(self, proposed, draw, edits):
        """The key of the limit that refuses a draw of a proposal; empty if none does."""
        network, factor = edited_network(self.config, edits), float(self.config["search.max_flops_factor"])
        if network.flops("table3")[0] > factor * edited_network(self.config, []).flops("table3")[0]:
            return "search.max_flops_factor"
        may_lack_memory = proposed["sequence"] > 0 and draw < MAX_DRAW
        lacks = may_lack_memory and memory_bytes(network, self.config, self.run.record) > proposed["memory_bytes"]
        return "search.max_memory_gb" if lacks else ""

    def first_draw(self, proposed):
        """The number of a trial's first draw: edits only add to the memory that the root needs."""
        needed = memory_bytes(edited_network(self.config, []), self.config, self.run.record)
        return MAX_DRAW if proposed["sequence"] > 0 and needed > proposed["memory_bytes"] else 0

    def check_proposal(self, history, trial):
        """Parent, network and hyper-parameters, computed again with those of the draws before."""
        proposed, line = trial.proposed, 2 * trial.proposed["sequence"] + 1
        memory = int(float(self.config["search.max_memory_gb"]) * 1e9)
        check_values(self.config, history, proposed)
        try:
            first = min(self.first_draw(proposed), proposed["draw"])
            draws = range(first, proposed["draw"] + 1)
            drawn = [proposal(self.networks, self.histories, history.group, {**proposed, "draw": draw})
                     for draw in draws]
            limits = [self.refused_by(proposed, draw, edits) for draw, (_, edits, _) in zip(draws, drawn[:-1])]
            limits.append(self.refused_by(proposed, proposed["draw"], proposed["edits"]))
        except MalformedFile as error:
            history.fail(line, error)
        if not is_same(proposed, drawn[-1]):
            self.run.findings.add(history.name, f"line {line}: the search proposes another trial from the lines seen")
        elif memory and proposed["memory_bytes"] != memory:
            self.run.findings.add(history.name, f"line {line}: memory_bytes: is {proposed['memory_bytes']}; must "
                                                f"be {memory}, according to search.max_memory_gb")
        elif not all(limits[:-1]):
            self.run.findings.add(
                history.name, f"line {line}: draw: proposal {first + limits.index('')} exceeds no limit")
        elif limits[-1]:
            self.run.findings.add(history.name, f"line {line}: edits: exceed {limits[-1]}")

    def check_flops(self, history, trial):
        network = edited_network(self.config, trial.proposed["edits"])
        flops = [{"ledger": ledger, "training": network.flops(ledger)[0],
                  "evaluation": network.flops(ledger)[1]} for ledger in LEDGERS]
        if trial.finished["flops"] != flops:
            self.fail(history, trial, f"flops are not those of the edited network; must be {flops}")

    def parts(self, group):
        """(configuration, epochs) of each trial of a group."""
        return [(trial_config(self.config, trial.proposed), len(trial.accuracy))
                for trial in self.histories[group].done()]

    def check_group(self, number, group, steps):
        """The trials of a finished group against its record and steps."""
        history, first, end = self.histories[number], 0, 0.0
        batch = int(self.config["training.batch_size"])
        per_epoch = group["samples_drawn"] // batch
        for trial in history.trials:
            if not trial.finished:
                return  # History reports it
            finished = trial.finished
            if finished["end_seconds"] > 0 and finished["begin_seconds"] < end - ROUNDING_SECONDS:
                self.fail(history, trial, "begin_seconds is before the end of the trial before")
            end = max(end, finished["end_seconds"])
            self.check_spent(history, trial)
            if not trial.has_completed():
                continue
            epochs = len(trial.accuracy)
            self.check_epochs(history, trial)
            for key, wanted in (("samples_trained", epochs * per_epoch * batch),
                                ("samples_evaluated", epochs * self.hold_out),
                                ("training_seconds",
                                 plain_sum(group["epoch_seconds"][first:first + epochs]))):
                if finished[key] != wanted:
                    self.fail(history, trial, f"{key} is {finished[key]}; must be {wanted}")
            self.check_flops(history, trial)
            self.check_ends(history, trial, first, steps)
            self.check_classes(history, trial)
            first += epochs
        self.check_end(history, first, end)

    def is_time_over(self, seconds):
        """Whether a search may end after so many seconds. A replay ends where the other did."""
        limit = float(self.config["search.duration_seconds"])
        return 0 < limit <= seconds + MAX_PAUSE_SECONDS or self.config["search.history"] == "recorded"

    def check_end(self, history, epochs, seconds):
        """The number of trials. Only the writer knows whether failed ones count."""
        wanted, every = int(self.config["search.trials"]), len(history.trials)
        limit = float(self.config["search.duration_seconds"])
        is_full = limit > 0 and epochs + trial_epochs(self.config, every) > MAX_EPOCHS
        has_room = wanted == 0 or every < wanted
        may_end = self.is_time_over(seconds) or is_full or history.end_reason()
        if not (len(history.done()) <= wanted <= every or has_room and may_end):
            self.run.findings.add(history.name, f"has {every} trials in {seconds} s; must have {wanted} "
                                                "(search.trials) or take search.duration_seconds")

    def check_spent(self, history, trial):
        finished = trial.finished
        parts = (finished["proposing_seconds"] + finished["building_seconds"] + finished["training_seconds"]
                 + finished["evaluating_seconds"])
        if parts > finished["end_seconds"] - finished["begin_seconds"] + ROUNDING_SECONDS:
            self.fail(history, trial,
                      "proposing, building, training and evaluating take longer than the trial")

    def check_epochs(self, history, trial):
        epochs, planned = len(trial.accuracy), trial_epochs(self.config, trial.proposed["sequence"])
        is_last = trial is history.trials[-1]
        may_be_short = is_last and self.is_time_over(trial.finished["end_seconds"])
        if epochs > planned or epochs < planned and not may_be_short:
            self.fail(history, trial, f"accuracy has {epochs} epochs; must have {planned}")

    def check_ends(self, history, trial, first, steps):
        """A trial begins before its first step; an epoch ends after its last and before the next step."""
        finished = trial.finished
        begin = finished["begin_seconds"] + finished["proposing_seconds"] + finished["building_seconds"]
        if any(step.end_seconds < begin - ROUNDING_SECONDS for step in steps if step.epoch == first):
            self.fail(history, trial, "begin_seconds does not fit the first step in steps.csv")
            return
        for epoch, end in enumerate(trial.finished["epoch_seconds"], first):
            before = [step.end_seconds for step in steps if step.epoch == epoch]
            after = [step.end_seconds for step in steps if step.epoch == epoch + 1]
            if not before or before[-1] > end + ROUNDING_SECONDS or after and after[0] < end - ROUNDING_SECONDS:
                self.fail(history, trial, "epoch_seconds do not follow from steps.csv")
                return

    def check_classes(self, history, trial):
        name = f"groups/{history.group}/trials/{trial.proposed['sequence']}.npy"
        classes, _ = read_npy(self.run.files, name, "i", (self.hold_out,))
        scored = sum(found != NOT_SCORED for found in classes)
        correct = sum(label == found for label, found in zip(self.labels, classes))
        if scored < len(classes) and self.config["data.on_bad_sample"] != "skip":
            self.fail(history, trial, f"{len(classes) - scored} samples of {name} are not scored")
        if trial.accuracy[-1] != correct / max(scored, 1):
            self.fail(history, trial, f"accuracy is not that of {name}")
        if any(round(value * scored) / max(scored, 1) != value for value in trial.accuracy):
            self.fail(history, trial, "accuracy is not a multiple of 1 / the scored samples")

    def point(self, seconds, members):
        work, trials, best = 0.0, 0, 0.0
        for history in members:
            for trial in history.done():
                ends = trial.finished["epoch_seconds"]
                done = sum(end <= seconds for end in ends)
                work += float(done) * trial.work_of_epoch()
                if done == len(ends):
                    trials, best = trials + 1, max(best, trial.accuracy[-1])
        ops = work / seconds
        return {"seconds": seconds, "trials": trials, "ops": ops, "regulated": regulated(ops, best, self.hold_out),
                "best_accuracy": best}

    def keep_rounded(self, row, stored):
        """Gives `row` the stored regulated OPS if only the logarithm may round differently."""
        old = stored.get("regulated") if isinstance(stored, dict) else None
        if isinstance(old, float) and abs(old - row["regulated"]) <= ROUNDING * abs(row["regulated"]):
            row["regulated"] = old

    def record(self, finished):
        """The expected `search` of result.json; None if no group has finished. `finished` are groups' numbers."""
        row, stored = self.exact_record(finished), self.run.record.get("search")
        if row and stored:
            self.keep_rounded(row, stored)
            for point, other in zip(row["curve"], stored.get("curve", [])):
                self.keep_rounded(point, other)
        return row

    def exact_record(self, finished):
        members = [self.histories[number] for number in finished]
        if not members:
            return None
        groups = [history.record() for history in members]
        work = plain_sum(group["work"] for group in groups)
        seconds = max(group["seconds"] for group in groups)
        best = max(groups, key=lambda group: group["best_accuracy"])  # the first of equal ones
        ops, accuracy = work / seconds, best["best_accuracy"]
        times = [seconds * point / POINTS for point in range(1, POINTS)] + [seconds]
        curve = [self.point(time, members) for time in times]
        rows = [(history.group, trial) for history in members for trial in history.done()]
        rows.sort(key=lambda row: (row[1].proposed["sequence"], row[0]))
        return {"trials": sum(group["trials"] for group in groups), "hold_out_samples": self.hold_out,
                "seconds": seconds, "work": work, "ops": ops, "regulated": regulated(ops, accuracy, self.hold_out),
                "best_accuracy": accuracy,
                "best": {"group": members[groups.index(best)].group, "sequence": best["best"]},
                "stability": max(abs(point["ops"] - ops) / ops for point in curve[POINTS // 2 - 1:]),
                "spent": {key: plain_sum(group["spent"][key] for group in groups) for key in (*SPENT, "other")},
                "curve": curve, "family": [family_row(*row) for row in rows],
                "early_ends": [f"group {history.group}: {group['end_reason']}"
                               for history, group in zip(members, groups) if group["end_reason"]]}


def family_row(group, trial):
    edits = trial.proposed["edits"]
    return {"id": {"group": group, "sequence": trial.proposed["sequence"]}, "parent": trial.proposed["parent"],
            "edit": edits[-1]["kind"] if edits else "", "accuracy": trial.accuracy[-1],
            "begin_seconds": trial.finished["begin_seconds"], "end_seconds": trial.finished["end_seconds"]}
