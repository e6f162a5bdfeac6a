# SPDX-License-Identifier: Apache-2.0
"""The result directory of several runs (run.repeat) and its repetitions.json."""
import os

from arithmetic import median
from configuration import flatten, read_yaml, text_of as config_text
from json_reader import read_json
from result_files import ResultFiles
from single_run import check_run, text_of

NAME = "repetitions.json"
CONFIG = "config.yaml"
SPREADS = ("flops", "vflops", "quality", "training_seconds")
EXIT_CODES = (0, 7, 9, 4, 5)  # the best first; any other is worse


class RepetitionsCheck:
    def __init__(self, findings):
        self.findings = findings
        self.files = ResultFiles(findings.directory, findings)
        self.summary, self.config = {}, {}  # config.yaml, which all runs share except for the seed

    def check(self):
        """The content of repetitions.json."""
        self.summary = read_json(self.files, NAME)
        self.config = read_yaml(self.files.text(CONFIG))
        rows, requested = self.summary["repetitions"], self.summary["requested"]
        was_stopped = bool(self.summary["stopped"])
        self.check_folders(len(rows) + was_stopped)
        if len(rows) > requested or (len(rows) == requested) == was_stopped:
            self.findings.add(NAME, "has too many runs, or no reason why there are fewer")
        for number, row in enumerate(rows, 1):
            self.check_repetition(number, row)
        worst = max((row["exit_code"] for row in rows), key=severity, default=0)
        self.compare("exit_code", self.summary["exit_code"], worst, "the runs")
        for key in SPREADS:
            self.check_spread(key)
        return self.summary

    def compare(self, key, stored, expected, source):
        self.findings.must_be(NAME, key, stored, expected, source)

    def check_folders(self, count):
        known = {NAME, CONFIG} | {f"repetition_{number}" for number in range(1, count + 1)}
        for name in sorted(set(os.listdir(self.findings.directory)) - known):
            self.findings.add(name, "exists; repetitions.json does not list it")

    def check_repetition(self, number, row):
        name = f"repetition_{number}"
        folder = os.path.join(self.findings.directory, name)
        if os.path.islink(folder) or not os.path.isdir(folder):
            self.findings.add(name, "is missing; repetitions.json lists it")
            return
        record, manifest = check_run(self.findings.below(name))
        if record is None:
            return
        source = f"{name}/result.json"
        for key in ("name", "program_version"):
            self.compare(key, self.summary[key], record[key], source)
        for key, value in row_of(name, record, manifest).items():
            self.compare(f"repetitions[{number - 1}].{key}", row[key], value, source)
        self.check_configuration(number, record)

    def check_configuration(self, number, record):
        """Compares a configuration with config.yaml of the folder."""
        config = flatten(record["config"])
        config["run.seed"] -= number - 1
        config["run.repeat"] = self.summary["requested"]
        for key in sorted(config.keys() | self.config.keys()):
            if config_text(self.config.get(key)) != config_text(config.get(key)):
                self.findings.add(f"repetition_{number}/config.yaml", f"{key} is not as in {CONFIG}")

    def check_spread(self, key):
        values = [row[key] for row in self.summary["repetitions"]
                  if row["counted"] and row[key] is not None]
        wanted = [None] * 4
        if values:
            middle = median(values)
            deviation = median([abs(value - middle) for value in values])
            wanted = [middle, min(values), max(values), deviation]
        names = ("median", "minimum", "maximum", "median_absolute_deviation")
        self.compare(key, [self.summary[key][name] for name in names], wanted, "the runs")


def severity(exit_code):
    return EXIT_CODES.index(exit_code) if exit_code in EXIT_CODES else len(EXIT_CODES)


def row_of(name, record, manifest):
    """The row of repetitions.json that the run's own record gives."""
    has_failed = any(group["failure"] for group in record["work"]["groups"])
    return {"directory": name, "seed": record["workload"]["seed"],
            "status": record["verdict"]["status"], "exit_code": record["verdict"]["exit_code"],
            "counted": not has_failed, "flops": record["scores"]["flops"],
            "vflops": record["scores"]["vflops"], "quality": record["quality"]["ensemble"],
            "training_seconds": record["time"]["training_seconds"], "manifest": manifest}


def repetitions_line(summary, digest):
    """The last line of output, with the numbers of the run with the median VFLOPS."""
    rows = summary["repetitions"]
    scored = sorted((row for row in rows if row["counted"] and row["vflops"] is not None),
                    key=lambda row: row["vflops"])
    runs = scored[(len(scored) - 1) // 2:] or [row for row in rows[:1] if row["counted"]]
    run = runs[0] if runs else dict.fromkeys(SPREADS)
    flops, vflops, quality = (text_of(run[key], form) for key, form in (
        ("flops", ".3e"), ("vflops", ".3e"), ("quality", ".4f")))
    return (f"REPETITIONS {len(summary['repetitions'])} of {summary['requested']}  FLOPS={flops} "
            f"VFLOPS={vflops} quality={quality} sha256={digest}")
