#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check logs in MLPerf's format, mllog/result_<m>.txt of a result, against our own rules.

    check_mllog.py FILE...

The rules are MLPerf's form and order of events, with one difference for bagging. A log describes one
base model, which need not reach the target: run_stop is "success" if it finished its epochs.
Prints each broken rule with its line; exit code 1 if there is one, 2 if a file cannot be read.
Needs Python's standard library only.
"""
import json
import sys

PREFIX = ":::MLLOG "
FIELDS = ("namespace", "time_ms", "event_type", "key", "value", "metadata")
POINT, START, END = "POINT_IN_TIME", "INTERVAL_START", "INTERVAL_END"


def is_text(value):
    return isinstance(value, str) and value != ""


def is_text_or_none(value):
    return value is None or is_text(value)


def is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_positive(value):
    return is_count(value) and value > 0


def is_number(value):
    """A number that a double can hold."""
    return (isinstance(value, (int, float)) and not isinstance(value, bool)
            and -sys.float_info.max <= value <= sys.float_info.max)


def is_share(value):
    return is_number(value) and 0 <= value <= 1


# key: (test of its value, description of legal values, True if every log has the key)
POINTS = {
    "submission_benchmark": (is_text, "a string", True),
    "submission_division": (is_text, "a string", True),
    "submission_org": (is_text_or_none, "a string or null", True),
    "submission_platform": (is_text, "a string", True),
    "submission_status": (is_text_or_none, "a string or null", True),
    "seed": (is_count, "a whole number", True),
    "global_batch_size": (is_positive, "a whole number above 0", True),
    "train_samples": (is_count, "a whole number", True),
    "eval_samples": (is_count, "a whole number", True),
    "opt_name": (is_text, "a string", True),
    "opt_base_learning_rate": (is_number, "a number", True),
    "opt_learning_rate_warmup_epochs": (is_number, "a number", True),
    "opt_learning_rate_schedule": (is_text, "a string", True),
    "opt_weight_decay": (is_number, "a number", True),
    "opt_momentum": (is_number, "a number", False),
    "opt_beta_1": (is_number, "a number", False),
    "opt_beta_2": (is_number, "a number", False),
    "label_smoothing": (is_number, "a number", True),
    "gradient_accumulation_steps": (is_positive, "a whole number above 0", True),
    "eval_accuracy": (is_share, "a number from 0 to 1", False),
}
# interval -> the interval that must contain it
INTERVALS = {"init": None, "run": None, "epoch": "run", "eval": "run"}


def strict_object(pairs):
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError("it has a key twice")
    return dict(pairs)


def reject_constant(name):
    raise ValueError(f"{name} is not a JSON number")


class Checker:
    def __init__(self):
        self.problems = []  # (line, text)
        self.line = 0
        self.time = 0
        self.counts = {}
        self.open = []  # intervals that have begun, the innermost last
        self.done = []  # intervals that have ended, in order
        self.epoch = 0
        self.status = None

    def add_problem(self, text):
        self.problems.append((self.line, text))

    def read(self, lines):
        for self.line, line in enumerate(lines, 1):
            if not line.startswith(PREFIX):
                self.add_problem(f"does not begin with {PREFIX!r}")
                continue
            try:
                event = json.loads(line[len(PREFIX):], object_pairs_hook=strict_object,
                                   parse_constant=reject_constant)
            except (ValueError, RecursionError) as error:
                self.add_problem(f"is not JSON: {error}")
                continue
            if self.has_legal_fields(event):
                self.check_event(event)
        self.finish()

    def has_legal_fields(self, event):
        if not isinstance(event, dict) or set(event) != set(FIELDS):
            self.add_problem(f"must have the fields {', '.join(FIELDS)} and no others")
            return False
        rules = ((is_positive(event["time_ms"]), "time_ms must be a whole number above 0"),
                 (isinstance(event["namespace"], str), "namespace must be a string"),
                 (isinstance(event["metadata"], dict), "metadata must be an object"),
                 (is_text(event["key"]), "key must be a string"))
        for is_kept, text in rules:
            if not is_kept:
                self.add_problem(text)
        return all(is_kept for is_kept, _ in rules)

    def check_event(self, event):
        key, kind = event["key"], event["event_type"]
        if event["time_ms"] < self.time:
            self.add_problem(f"time_ms goes back by {self.time - event['time_ms']}")
        self.time = event["time_ms"]
        self.counts[key] = self.counts.get(key, 0) + 1
        if self.status is not None:
            self.add_problem(f"{key} after run_stop")
        name, _, end = key.rpartition("_")
        if name in INTERVALS and end in ("start", "stop"):
            self.check_interval(event, name, end)
        elif kind != POINT:
            self.add_problem(f"{key} must be {POINT}")
        elif key not in POINTS:
            self.add_problem(f"{key} is not a key of these logs")
        else:
            self.check_point(event)

    def check_point(self, event):
        key = event["key"]
        is_legal, description, _ = POINTS[key]
        if not is_legal(event["value"]):
            self.add_problem(f"{key} is {json.dumps(event['value'])}; it must be {description}")
        if event["value"] is None and not is_text(event["metadata"].get("reason")):
            self.add_problem(f"{key} is null without a reason in its metadata")
        if key == "eval_accuracy":
            if self.open[-1:] != ["eval"]:
                self.add_problem("eval_accuracy outside eval_start and eval_stop")
        elif "run" in self.open or "run" in self.done:
            self.add_problem(f"{key} after run_start")

    def check_interval(self, event, name, end):
        expected = START if end == "start" else END
        if event["event_type"] != expected:
            self.add_problem(f"{event['key']} must be {expected}")
        if event["value"] is not None:
            self.add_problem(f"{event['key']} must have the value null")
        if end == "start":
            inside = self.open[-1] if self.open else None
            if inside != INTERVALS[name]:
                self.add_problem(f"{event['key']} is in {inside or 'no interval'}; "
                             f"it must be in {INTERVALS[name] or 'none'}")
            if name == "run" and "init" not in self.done:
                self.add_problem("run_start before init_stop")
            self.open.append(name)
        elif self.open[-1:] != [name]:
            self.add_problem(f"{event['key']} without {name}_start, or across another interval")
        else:
            self.done.append(self.open.pop())
        if name in ("epoch", "eval"):
            self.check_epoch(event, name, end)
        if event["key"] == "run_stop":
            self.check_status(event["metadata"])

    def check_epoch(self, event, name, end):
        number = event["metadata"].get("epoch_num")
        if name == "epoch" and end == "start":
            self.epoch += 1
        if number != self.epoch or isinstance(number, bool):
            self.add_problem(f"{event['key']} has the epoch_num {json.dumps(number)}; "
                         f"it must be {self.epoch}")

    def check_status(self, metadata):
        self.status = metadata.get("status")
        if self.status not in ("success", "aborted"):
            self.add_problem(f"run_stop has the status {json.dumps(self.status)}; "
                         "it must be success or aborted")
            self.status = "?"
        if self.status == "aborted" and not is_text(metadata.get("reason")):
            self.add_problem("run_stop is aborted without a reason in its metadata")

    def finish(self):
        required = [key for key, (_, _, always) in POINTS.items() if always]
        required += ["init_start", "init_stop", "run_start", "run_stop"]
        for key in required:
            if self.counts.get(key, 0) != 1:
                self.add_problem(f"{key} occurs {self.counts.get(key, 0)} times; it must occur once")
        for key, count in self.counts.items():
            if key in POINTS and key not in required and key != "eval_accuracy" and count > 1:
                self.add_problem(f"{key} occurs {count} times; it may occur once")
        if self.status == "success":
            for key in ("epoch_start", "eval_accuracy"):
                if not self.counts.get(key):
                    self.add_problem(f"run_stop is success without {key}")
        for name in self.open:
            self.add_problem(f"{name}_start without {name}_stop")


def check(path):
    """The problems of a file as strings."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    checker = Checker()
    checker.read(text.split("\n")[:-1] if text.endswith("\n") else text.split("\n"))
    if not text.endswith("\n"):
        checker.add_problem("the last line has no newline")
    return [f"{path}:{line}: {text}" for line, text in checker.problems]


def main(paths):
    if not paths or paths[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if paths else 2
    problems = []
    for path in paths:
        try:
            problems += check(path)
        except (OSError, UnicodeDecodeError) as error:
            print(f"check_mllog: {path}: {error}", file=sys.stderr)
            return 2
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
