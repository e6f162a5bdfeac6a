# SPDX-License-Identifier: Apache-2.0
"""Quality, eq. 6 to 8 and the verdict of a run."""
import math

from arithmetic import penalty_coefficient, total
from configuration import has_evaluations, is_search
from energy import EnergyCheck
from search import plain_sum
from tasks import check_numbers, task_of
from verdict import Verdict

MAX_PENALTY_DIGITS = 200  # of an integer


class ScoresCheck:
    """`checked` are the CheckedGroups of the run, `task` has scored the finished ones or is None."""

    def __init__(self, run, checked, task):
        self.run, self.record, self.config, self.task = run, run.record, run.config, task
        self.groups = [group.group for group in checked]
        self.finished = [group for group in self.groups if not group["failure"]]
        self.members = [None if group.group["failure"] else group.quality for group in checked]
        self.bad_samples, self.decoder_warnings = (
            sum(group.stored.get(key, 0) for group in checked) for key in ("bad_samples", "decoder_warnings"))
        self.searches = [group.stored["search"] for group in checked
                         if not group.group["failure"] and group.stored.get("search")]
        self.kind = task_of(run.config)

    def check(self):
        self.check_quality()
        self.check_ensemble()
        self.check_members_mean()
        self.check_work()
        self.check_time_to_quality()
        penalty = self.check_penalty()
        vflops = self.check_vflops(penalty)
        EnergyCheck(self.run).check(vflops)
        for key, value in Verdict(self.run, self.groups, self.bad_samples).record_object().items():
            self.compare("verdict", key, value, "docs/RULES.md")

    def compare(self, section, key, expected, source):
        self.run.must_be(f"{section}.{key}", self.record[section][key], expected, source)

    def check_quality(self):
        target = float(self.config["workload.target_quality"])
        exponent = float(self.config["workload.penalty_exponent"])
        if exponent * -math.log10(target) > MAX_PENALTY_DIGITS:
            self.run.findings.add("config.yaml", "the penalty of workload.target_quality and penalty_exponent can "
                                  f"exceed 1e{MAX_PENALTY_DIGITS}")
        self.compare("quality", "metric", self.kind.metric, "config")
        self.compare("quality", "target", target, "config")
        self.compare("quality", "exponent", exponent, "config")
        self.compare("quality", "members", self.members, "groups/<m>/" + self.kind.files[0])
        if self.task:
            labels = "evaluation/" + self.kind.files[2]
            self.compare("quality", "labels_sha256", self.task.labels_sha256, labels)
        if not self.finished:
            self.compare("quality", "ensemble", None, "groups that all failed")

    def check_ensemble(self):
        ensemble = None
        if self.task and self.task.has_ensemble():
            ensemble = self.run.attempt(self.task.ensemble)
        if not ensemble:
            return
        numbers, digest, interval = ensemble
        quality, file = self.record["quality"], "evaluation/" + self.kind.files[1]
        source = f"{file} and evaluation/{self.kind.files[2]}"
        check_numbers(lambda key, stored, wanted: self.run.must_be("quality." + key, stored, wanted, source),
                      lambda kind: kind.ensemble_keys, self.task, quality, numbers)
        self.compare("quality", "ensemble_sha256", digest, file)
        for key, value in zip(("low", "high"), interval or ()):
            self.run.must_be("quality.confidence_interval." + key, quality["confidence_interval"][key],
                             value, source)
        self.check_members_interval()

    def check_members_interval(self):
        stored = self.record["quality"]["members_interval"]
        interval = self.task.members_interval(int(self.config["run.seed"]))
        ends = [stored["low"], stored["high"]]
        if interval is None or ends == [None, None] and "are too many" in stored.get("low_reason", ""):
            interval = (None, None)
        if interval is not False:
            self.run.must_be("quality.members_interval", ends, list(interval),
                             "groups/<m>/" + self.kind.files[0])

    def check_members_mean(self):
        ensemble, mean = self.record["quality"]["ensemble"], None
        if self.finished and ensemble is not None:
            members = [member for member, group in zip(self.members, self.groups) if not group["failure"]]
            mean = total(member or 0 for member in members) / len(self.finished)
        self.compare("quality", "members_mean", mean, "quality.members")
        self.compare("quality", "ensemble_gain", None if mean is None else ensemble - mean, "quality")

    def check_work(self):
        """Eq. 6, and the sums over groups."""
        samples = sum(group["samples_trained"] for group in self.finished)
        self.compare("work", "samples_trained", samples, "work.groups")
        self.compare("work", "iterations", sum(g["iterations"] for g in self.finished), "work.groups")
        longest = max([0.0] + [group["training_seconds"] or 0.0 for group in self.groups])
        self.compare("time", "training_seconds", longest, "work.groups")
        self.compare("time", "epoch_seconds", self.epoch_seconds(), "work.groups")
        speed = flops = per_rank = None
        if self.finished and longest > 0:
            speed = float(samples) / longest
            per_rank = speed / self.record["topology"]["ranks"]
            flops = float(samples) * float(self.record["flops"]["training_per_sample"]) / longest
            if is_search(self.config):
                flops = plain_sum(row["training_flops"] for row in self.searches) / longest
        self.check_search()
        self.compare("throughput", "images_per_second", speed, "work.groups")
        self.compare("throughput", "per_rank", per_rank, "work.groups")
        self.compare("scores", "flops", flops, "eq. 6")

    def check_search(self):
        numbers, expected = [group["group"] for group in self.finished], None
        if self.run.search.histories:
            expected = self.run.search.record(numbers)
        stored = self.record.get("search")
        for key in sorted((stored or {}).keys() | (expected or {}).keys()):
            self.run.must_be("search." + key, (stored or {}).get(key), (expected or {}).get(key),
                             "groups/<m>/trials.jsonl")

    def epoch_seconds(self):
        """Each epoch's longest time among the groups that have it."""
        epochs = max([0] + [len(group["epoch_seconds"]) for group in self.finished])
        return [max(group["epoch_seconds"][epoch] for group in self.groups
                    if epoch < len(group["epoch_seconds"])) for epoch in range(epochs)]

    def check_time_to_quality(self):
        """The longest time of the finished groups to their first quality of at least the target."""
        target, times = self.record["quality"]["target"], []
        for group in self.finished if has_evaluations(self.config) else []:
            reached = [epoch["training_seconds"] for epoch in group["quality_by_epoch"]
                       if epoch["quality"] >= target]
            times.append(reached[0] if reached else None)
        longest = None if None in times else max(times, default=None)
        self.compare("time", "time_to_quality_seconds", longest, "work.groups")

    def check_penalty(self):
        """Eq. 8. Another machine's pow() may differ in the last digits."""
        quality, stored = self.record["quality"], self.record["scores"]["penalty_coefficient"]
        penalty = None
        if quality["ensemble"] is not None:
            penalty = penalty_coefficient(quality["ensemble"], quality["target"], quality["exponent"])
            if None not in (penalty, stored) and abs(stored - penalty) <= 1e-15 * penalty:
                penalty = stored
        self.compare("scores", "penalty_coefficient", penalty, "eq. 8")
        return penalty

    def check_vflops(self, penalty):
        """Checks eq. 7 for the quality and for both ends of its interval."""
        quality, scores = self.record["quality"], self.record["scores"]
        vflops = None if penalty is None or scores["flops"] is None else scores["flops"] * penalty
        self.compare("scores", "vflops", vflops, "eq. 7")
        has_members = quality["members_interval"]["low"] is not None
        interval = quality["members_interval" if has_members else "confidence_interval"]
        for key in ("low", "high"):
            end, stored = None, scores["vflops_interval"][key]
            if interval[key] is not None and scores["flops"] is not None:
                end = penalty_coefficient(interval[key], quality["target"], quality["exponent"])
                end = None if end is None else end * scores["flops"]
                if None not in (end, stored) and abs(stored - end) <= 2e-15 * end:
                    end = stored
            self.run.must_be("scores.vflops_interval." + key, stored, end, "eq. 7 and 8")
        return vflops
