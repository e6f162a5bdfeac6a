# SPDX-License-Identifier: Apache-2.0
"""docs/RULES.md, rules 1 to 7 and 9."""
import collections

from configuration import image_extent

Rule = collections.namedtuple("Rule", "number what required found kept broken")

# (rule, key of `workload`, required value)
IMAGE_CLASSIFICATION = (
    (1, "classes", 1000), (2, "image_size", 224), (2, "backbone_width", 64), (3, "epochs", 90),
    (4, "target_quality", 0.763), (4, "penalty_exponent", 5))
EXTREME_WEATHER = (
    (2, "channels", 16), (2, "backbone_width", 64), (3, "epochs", 50), (4, "target_quality", 0.35),
    (4, "penalty_exponent", 10))
DETECTOR = {
    "trained_stages": "5", "pyramid_channels": "256", "head_features": "1024",
    "anchor_sizes": "[32, 64, 128, 256, 512]", "anchor_ratios": "[0.5, 1, 2]", "anchor_samples": "256",
    "region_samples": "512", "training_proposals": "2000", "inference_proposals": "1000"}


def rule(number, what, required, found, kept, broken=None):
    """`broken` is the reason of the verdict if the rule is broken."""
    return Rule(number, what, str(required), str(found), kept,
                broken or f"rule {number}: {what} must be {required}, is {found}")


def equal(number, what, required, found):
    return rule(number, what, required, found, str(required) == str(found))


def first_and_count(rows):
    more = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
    return rows[0] + more if rows else "none"


class Rules:
    """The rows in the order in which the verdict gives the broken ones as reasons."""

    def __init__(self, config, record):
        self.config, self.workload = config, record["workload"]

    def setting(self, number, name, required, kept):
        return rule(number, name, required, self.config[name] or "empty", kept)

    def data_kind(self, kind, meaning):
        return self.setting(1, "data.kind", f"{kind} ({meaning})", self.config["data.kind"] == kind)

    def no_disqualification(self):
        disqualifications = self.workload["data_disqualifications"]
        found = first_and_count(disqualifications)
        return rule(1, "disqualifications of the data", "none", found, not disqualifications, f"rule 1: {found}")

    def of_workload(self, rows):
        return [equal(number, "workload." + name, required, self.config["workload." + name])
                for number, name, required in rows]

    def image_classification(self):
        return [self.data_kind("image_folder", "the photographs of ImageNet-1k"),
                equal(1, "the number of training samples", 1281167, self.workload["training_samples"]),
                equal(1, "the number of validation samples", 50000, self.workload["validation_samples"]),
                self.no_disqualification(), *self.of_workload(IMAGE_CLASSIFICATION)]

    def extreme_weather(self):
        rows = [self.data_kind("climate_hdf5", "years of the ExtremeWeather data")]
        for what in ("training", "validation"):
            found = self.workload[what + "_samples"]
            rows.append(rule(1, f"the number of {what} samples", "1460 or more", found, found >= 1460))
        _, width = image_extent(self.config)
        return [*rows, self.no_disqualification(),
                equal(1, "workload.classes", 4, self.config["workload.classes"]),
                equal(2, "workload.image_size", 768, self.config["workload.image_size"]),
                equal(2, "workload.image_width", 1152, width), *self.of_workload(EXTREME_WEATHER),
                *(equal(2, "detector." + name, required, self.config["detector." + name])
                  for name, required in DETECTOR.items())]

    def other_workload(self):
        return [self.setting(1, "workload.kind", "image_classification or extreme_weather", False)]

    def rows(self, bad_samples):
        level, sampler = self.config["run.level"], self.config["bagging.sampler"]
        if level == "custom":
            return []
        kinds = {"image_classification": self.image_classification,
                 "extreme_weather": self.extreme_weather}
        rows = kinds.get(self.config["workload.kind"], self.other_workload)()
        rows += [self.setting(5, "bagging.sampler", "bootstrap or poisson",
                              sampler in ("bootstrap", "poisson")),
                 self.setting(6, "training.initial_weights", "empty",
                              not self.config["training.initial_weights"]),
                 equal(7, "the number of bad samples", 0, bad_samples)]
        if level != "free":
            batch_norm_samples = self.config["training.batch_norm_samples"]
            rows.append(equal(9, "training.batch_norm_samples", "auto", batch_norm_samples))
        return rows
