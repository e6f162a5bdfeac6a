# SPDX-License-Identifier: Apache-2.0
"""groups/<m>/record.json, recomputed from the other files of the group."""
import collections
import math
import os

from configuration import has_evaluations
from counters import check_steps_counter
from json_reader import read_json
from network import edited_network
from ranks import RanksCheck
from steps import StepsCheck
from tables import read_ranks, read_steps
from tasks import check_numbers
from weights import weights_digest

# `group` is the expected row of work.groups, `stored` is record.json.
CheckedGroup = collections.namedtuple("CheckedGroup", "group stored quality digest")

COUNTS = {"group", "ranks", "samples_drawn", "samples_trained", "iterations", "skipped_steps", "passed",
          "diverged_at_step"}
MAX_COUNT = 2**40  # so that sums over the groups fit in 64 bits


def blank_row(row):
    """The row of a group without stored files."""
    blank = {}
    for key, value in row.items():
        if key in COUNTS and not isinstance(value, list):  # an audit has "ranks", too
            blank[key] = 0
        elif isinstance(value, (dict, list, str)):
            if not key.endswith("_reason"):
                blank[key] = blank_row(value) if isinstance(value, dict) else type(value)()
        else:
            blank |= {key: None, key + "_reason": "not measured"}
    return blank


class GroupCheck:
    """Replaces those values of `group`, the stored record, that follow from other files."""

    def __init__(self, run, number, model, task):
        self.run, self.number, self.model, self.task = run, number, model, task
        self.search, self.batches = None, None  # the expected `search`, batches of its best trial
        self.config, self.record, self.findings = run.config, run.record, run.findings
        self.folder = f"groups/{number}/"
        self.name = self.folder + "record.json"
        self.listed = self.record["work"]["groups"][number]
        self.group, self.stored, self.quality, self.digest = dict(self.listed), {}, None, ""

    def check(self):
        """A CheckedGroup."""
        path = os.path.join(self.run.files.directory, self.name)
        if self.listed["failure"] and not os.path.exists(path):
            self.group = blank_row(self.listed) | {
                "group": self.number, "ranks": self.record["topology"]["degree"],
                "failure": self.listed["failure"]}
        elif (stored := self.run.attempt(read_json, self.run.files, self.name)) is not None:
            self.check_stored(stored)
        return CheckedGroup(self.group, self.stored, self.quality, self.digest)

    def check_stored(self, stored):
        self.group = dict(stored["record"])
        self.stored = {**stored, "record": self.group}
        self.check_facts()
        self.quality, self.digest = stored["quality"], stored["training_digest"]
        if not self.group["failure"]:
            self.check_finished()

    def compare(self, key, stored, expected, source):
        self.findings.must_be(self.name, key, stored, expected, source)

    def replace(self, key, value, source):
        self.compare("record." + key, self.group[key], value, source)
        self.group[key] = value

    def check_facts(self):
        group, audit = self.group, self.group["audit"]
        self.compare("record.group", group["group"], self.number, "its folder")
        self.compare("record.ranks", group["ranks"], self.record["topology"]["degree"], "result.json")
        hosts = sorted({place["host"] for place in self.run.places_of(self.number)})
        self.compare("record.hosts", group["hosts"], hosts, "topology.map in result.json")
        counts = {key: self.stored[key] for key in ("bad_samples", "decoder_warnings")}
        for key in ("samples_drawn", "samples_trained", "iterations", "skipped_steps"):
            counts["record." + key] = group[key]
        for key in ("passed", "diverged_at_step"):
            counts["record.audit." + key] = audit[key]
        for key, count in counts.items():
            if not 0 <= count <= MAX_COUNT:
                self.findings.add(self.name, f"{key} is {count}; must be 0 to {MAX_COUNT}")

    def check_finished(self):
        diverged = self.group["audit"]["diverged_at_step"]
        self.compare("record.audit.diverged_at_step", diverged, 0, "a group that finished")
        self.check_draw()
        steps = self.run.attempt(read_steps, self.run.files, self.folder + "steps.csv")
        if steps is not None:
            self.check_steps(steps)
        ranks = self.run.attempt(read_ranks, self.run.files, self.folder + "ranks.csv")
        if ranks is not None:
            RanksCheck(self.run, self.group, ranks, self.folder).check(steps)
        self.check_speed()
        if self.task and not self.listed["failure"]:
            self.check_quality()
        if steps:
            self.replace("quality_by_epoch", self.learning_curve(steps), self.folder + "steps.csv")
        self.check_weights()
        self.check_owner("training_digest", self.digest)
        check_continuations(self.findings, self.name, self.group, self.record)
        self.check_health()
        self.check_counters()
        self.group["failure"] = self.listed["failure"]

    def check_draw(self):
        """The Poisson sampler draws about as many samples as the data set has."""
        drawn, expected = self.group["samples_drawn"], self.record["workload"]["training_samples"]
        if self.config["bagging.sampler"] == "poisson" and abs(drawn - expected) > 10 * math.sqrt(expected):
            self.findings.add(
                self.name, f"record.samples_drawn is {drawn}; must be near {expected}, "
                           f"according to the sampler")

    def check_steps(self, steps):
        source, batch = self.folder + "steps.csv", int(self.config["training.batch_size"])
        parts = [(self.config, int(self.config["workload.epochs"]))]
        if self.run.search.histories:
            parts = self.run.search.parts(self.number)
        wanted = sum(epochs for _, epochs in parts) * (self.group["samples_drawn"] // batch)
        if len(steps) != wanted or not steps:
            self.findings.add(source, f"has {len(steps)} steps; must have {wanted} for all epochs")
        StepsCheck(self.run, self.group, steps, self.folder, parts).check()
        if self.run.search.histories:
            self.check_search(steps)
        elif "search" in self.stored:
            self.findings.add(self.name, "search exists; must not, according to workload.kind")
        self.replace("samples_trained", sum(step.samples for step in steps), source)
        self.replace("iterations", len(steps), source)
        self.replace("training_seconds", steps[-1].end_seconds if steps else None, source)

    def check_search(self, steps):
        """What the group states about its search; the model becomes that of the best trial."""
        history = self.run.search.histories[self.number]
        self.run.search.check_group(self.number, self.group, steps)
        self.search = history.record()
        self.compare("search", self.stored.get("search"), self.search, history.name)
        self.model = edited_network(self.config, self.search["edits"])
        self.batches = self.search["best_epochs"] * (
            self.group["samples_drawn"] // int(self.config["training.batch_size"]))
        self.compare("training_digest", self.digest, history.best().finished["digest"], history.name)

    def check_speed(self):
        seconds = self.group["training_seconds"]
        if seconds:
            samples = float(self.group["samples_trained"])
            work = self.search["training_flops"] if self.search else samples * float(3 * self.model.flops)
            source = self.folder + "steps.csv"
            self.replace("images_per_second", samples / seconds, source)
            self.replace("flops", work / seconds, source)

    def check_quality(self):
        task, file = self.task, self.folder + self.task.files[0]
        if task.unscored > self.stored["bad_samples"]:
            task.add_unscored_finding(f"at most {self.stored['bad_samples']}, the bad_samples of {self.name}")
        scored = self.run.attempt(task.add_member, file)
        if not scored:
            task.has_missing_member = True
            return
        numbers, digest = scored
        check_numbers(lambda key, stored, wanted: self.compare(key, stored, wanted, file + " and labels"),
                      lambda kind: kind.member_keys, task, self.stored, numbers)
        self.quality = numbers["quality"]
        self.replace("predictions_sha256", digest, file)
        if task.is_specific:
            self.check_owner("record.predictions_sha256", digest)

    def learning_curve(self, steps):
        """The expected quality_by_epoch. Keeps qualities before the last epoch; no other file has them."""
        every, last = int(self.config["run.evaluate_epochs"]), int(self.config["workload.epochs"])
        if not has_evaluations(self.config) or self.quality is None:
            return []
        stored, curve = self.group["quality_by_epoch"], []
        for index, epoch in enumerate(range(every, last, every)):
            seconds = max([0.0] + [step.end_seconds for step in steps if step.epoch < epoch])
            quality = stored[index]["quality"] if index < len(stored) else 0.0
            curve.append({"epoch": epoch, "training_seconds": seconds, "quality": quality})
        return curve + [{"epoch": last, "training_seconds": self.group["training_seconds"],
                         "quality": self.quality}]

    def check_weights(self):
        batches = self.batches or self.group["iterations"] * int(self.config["parallel.micro_batches"])
        name = self.folder + "weights.safetensors"
        path = os.path.join(self.run.files.directory, name)
        is_optional = self.config["run.keep_weights"] == "false" and self.config["run.level"] == "custom"
        if is_optional and not os.path.lexists(path):
            return
        digest = self.run.attempt(weights_digest, self.run.files, name, layers_of(self.model), batches)
        if digest:
            self.compare("training_digest", self.digest, digest, name)
            self.digest = digest

    def check_owner(self, key, digest):
        """Groups draw different initial weights unless the configuration names a file with them."""
        if not digest or self.config["training.initial_weights"]:
            return
        owner = self.run.owners.setdefault(digest, self.number)
        if owner != self.number:
            self.findings.add(self.name, f"{key} is that of group {owner}, which drew other initial weights")

    def check_counters(self):
        counters = self.stored["counters"]
        if self.group["continuations"]:
            self.compare("counters", counters, [], "record.continuations")
        else:
            check_steps_counter(self.findings, self.name, counters, self.group, self.folder + "steps.csv")
        if not self.listed["failure"]:
            self.run.counters[self.number] = counters

    def check_health(self):
        """Checks that the driver's readings of the group's GPUs are in range."""
        last, places, name = -1, self.record["topology"]["map"], self.name
        for gpu in self.group["device_health"]:
            rank = gpu["world_rank"]
            is_of_group = last < rank < len(places) and places[rank]["group"] == self.number
            if not is_of_group or self.config["run.meters"] == "none":
                self.findings.add(name, f"record.device_health has rank {rank} after {last}; must have the "
                                         "ranks of the group in order, and none with run.meters none")
                return
            last = rank
            self.compare("record.device_health[].host", gpu["host"], places[rank]["host"],
                         "topology.map in result.json")
            if not is_possible(gpu):
                self.findings.add(name, "record.device_health has an impossible share of polls or count of "
                                         f"errors of rank {rank}")


def layers_of(model):
    """(parameters, statistics) of a Model or a Network."""
    if callable(model.parameters):
        return model.parameters(), model.statistics()
    return model.parameters, model.statistics


def is_possible(gpu):
    """Whether a share of slowed readings and counts of memory errors are in range and agree."""
    share = bool(gpu["slowed_by"]) if gpu["slowed_share"] is None else gpu["slowed_share"]
    counts = [gpu[key] or 0.0 for key in ("corrected_ecc_errors", "uncorrected_ecc_errors")]
    return (0 <= share <= 1 and (share > 0) == bool(gpu["slowed_by"])
            and all(count >= 0 and count % 1 == 0 for count in counts))


def check_continuations(findings, name, group, record):
    """Checks that steps and start times of the resumptions do not decrease and are known."""
    step, started = 0, record["time"]["started_utc"]
    known = {row["started_utc"] for row in record["invocations"]}
    for row in group["continuations"]:
        if not (step <= row["step"] <= group["iterations"] and row["started_utc"] >= started
                and row["started_utc"] in known):
            findings.add(name, f"record.continuations has step {row['step']} of launch {row['started_utc']}; the "
                                f"step must be {step} to {group['iterations']}, the launch {started} or later, "
                                "and in invocations of result.json")
            return
        step, started = row["step"], row["started_utc"]
