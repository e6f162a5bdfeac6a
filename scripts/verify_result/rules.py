# SPDX-License-Identifier: Apache-2.0
"""docs/RULES.md, rules 1 to 7 and 9."""
import collections

Rule = collections.namedtuple("Rule", "number what required found kept broken")

Problem = collections.namedtuple(
    "Problem", "data_kind data training_samples validation_samples may_have_more samples_sha256 settings")


def settings(*rows):
    """(rule, key, required text) from rows "rule key value"."""
    return [(int(number), key, value) for number, key, value in (row.split(" ", 2) for row in rows)]


PROBLEMS = {  # by kind and class
    ("image_classification", "official"): Problem(
        "image_folder", "the photographs of ImageNet-1k", 1281167, 50000, False, None, settings(
            "1 workload.classes 1000", "2 workload.image_size 224", "2 workload.backbone_width 64",
            "3 workload.epochs 90", "4 workload.target_quality 0.763", "4 workload.penalty_exponent 5")),
    ("extreme_weather", "official"): Problem(
        "climate_hdf5", "years of the ExtremeWeather data", 1460, 1460, True, None, settings(
            "1 workload.classes 4", "2 workload.image_size 768", "2 workload.image_width 1152",
            "2 workload.channels 16", "2 workload.backbone_width 64", "3 workload.epochs 50",
            "4 workload.target_quality 0.35", "4 workload.penalty_exponent 10",
            "2 detector.trained_stages 5", "2 detector.pyramid_channels 256",
            "2 detector.head_features 1024", "2 detector.anchor_sizes [32, 64, 128, 256, 512]",
            "2 detector.anchor_ratios [0.5, 1, 2]", "2 detector.anchor_samples 256",
            "2 detector.region_samples 512", "2 detector.training_proposals 2000",
            "2 detector.inference_proposals 1000")),
    ("architecture_search", "official"): Problem(
        "image_folder", "the photographs of ImageNet-1k", 1281167, 50000, False, None, settings(
            "1 workload.classes 1000", "2 workload.image_size 224", "2 workload.backbone_width 64",
            "2 workload.model resnet50_v1", "2 search.root_blocks [3, 4, 6, 3]",
            "3 search.epochs [15, 30, 45, 60]", "3 search.trials 0", "4 search.hold_out 0.1")),
    ("image_classification", "mini"): Problem(
        "image_folder", "the photographs of data generate mini", 1536, 1536, False,
        "79f3ca620413ebfc072d17d864529e2c2c519b3d9d8f1e004cf4620db2c6700d", settings(
            "1 workload.classes 24", "2 workload.image_size 48", "2 workload.backbone_width 16",
            "3 workload.epochs 40", "4 workload.target_quality 0.957", "4 workload.penalty_exponent 5")),
    ("extreme_weather", "mini"): Problem(
        "climate_hdf5", "the weather of data generate mini", 512, 512, False,
        "020e05965ef9cb1519660a7bc20eb4a9765a367863b1d175d0a1b0acbb1df8ad", settings(
            "1 workload.classes 4", "1 data.climate_precision bf16", "2 workload.image_size 96",
            "2 workload.image_width 128", "2 workload.channels 16", "2 workload.backbone_width 64",
            "3 workload.epochs 8", "4 workload.target_quality 0.62", "4 workload.penalty_exponent 10",
            "2 detector.trained_stages 5", "2 detector.pyramid_channels 96",
            "2 detector.head_features 256", "2 detector.anchor_sizes [20, 32, 56, 96, 160]",
            "2 detector.anchor_ratios [0.5, 1, 2]", "2 detector.anchor_samples 128",
            "2 detector.region_samples 64", "2 detector.training_proposals 256",
            "2 detector.inference_proposals 200")),
}


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
    """The rows in the order in which the verdict lists broken rules."""

    def __init__(self, config, record):
        self.config, self.workload, self.search = config, record["workload"], record.get("search")

    def setting(self, number, name, required, kept):
        return rule(number, name, required, self.config[name] or "empty", kept)

    def samples(self, problem, what):
        required, found = getattr(problem, what + "_samples"), self.workload[what + "_samples"]
        if what == "training" and self.search:
            found += self.search["hold_out_samples"]
        if problem.may_have_more:
            return rule(1, f"the number of {what} samples", f"{required} or more", found, found >= required)
        return equal(1, f"the number of {what} samples", required, found)

    def no_disqualification(self):
        disqualifications = self.workload["data_disqualifications"]
        found = first_and_count(disqualifications)
        return rule(1, "disqualifications of the data", "none", found, not disqualifications, f"rule 1: {found}")

    def problem_rows(self, problem):
        rows = [self.setting(1, "data.kind", f"{problem.data_kind} ({problem.data})",
                             self.config["data.kind"] == problem.data_kind),
                self.samples(problem, "training"), self.samples(problem, "validation"),
                self.no_disqualification()]
        if problem.samples_sha256:
            rows.append(equal(1, "the SHA-256 of the samples", problem.samples_sha256,
                              self.workload["samples_sha256"]))
            rows.append(self.setting(3, "run.seed", "1, 2 or 3", self.config["run.seed"] in ("1", "2", "3")))
        return rows + [equal(number, key, required, self.config[key])
                       for number, key, required in problem.settings]

    def other_workload(self):
        return [self.setting(1, "workload.kind", "image_classification or extreme_weather", False)]

    def search_rows(self):
        rows = [self.setting(3, "search.duration_seconds", "3600 or more",
                             float(self.config["search.duration_seconds"]) >= 3600),
                self.setting(3, "search.history", "asynchronous or own",
                             self.config["search.history"] != "recorded")]
        if self.search:
            accuracy = self.search["best_accuracy"]
            rows.append(rule(4, "the best accuracy on the hold-out", "0.7 or more", f"{accuracy:.6f}",
                             accuracy >= 0.7))
        return rows + [self.setting(5, "training.precision", "16 bits or more",
                                    self.config["training.precision"] != "int8")]

    def sampler_rows(self):
        if self.config["workload.kind"] == "architecture_search":
            return self.search_rows()
        return [self.setting(5, "bagging.sampler", "bootstrap or poisson",
                             self.config["bagging.sampler"] in ("bootstrap", "poisson"))]

    def rows(self, bad_samples):
        level = self.config["run.level"]
        if level == "custom":
            return []
        problem = PROBLEMS.get((self.config["workload.kind"], self.config["workload.problem_class"]))
        rows = self.problem_rows(problem) if problem else self.other_workload()
        rows += self.sampler_rows()
        rows += [self.setting(6, "training.initial_weights", "empty",
                              not self.config["training.initial_weights"]),
                 equal(7, "the number of bad samples", 0, bad_samples)]
        if level != "free":
            batch_norm_samples = self.config["training.batch_norm_samples"]
            rows.append(equal(9, "training.batch_norm_samples", "auto", batch_norm_samples))
        return rows
