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


def is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_positive(value):
    return is_whole(value) and value > 0


def is_number(value):
    """A number that a double can hold."""
    return (isinstance(value, (int, float)) and not isinstance(value, bool)
            and -sys.float_info.max <= value <= sys.float_info.max)


def is_share(value):
    return is_number(value) and 0 <= value <= 1


# key: (rule of its value, description of the rule, True if every log has the key)
POINTS = {
    "submission_benchmark": (is_text, "a text", True),
    "submission_division": (is_text, "a text", True),
    "submission_org": (is_text_or_none, "a text or null", True),
    "submission_platform": (is_text, "a text", True),
    "submission_status": (is_text_or_none, "a text or null", True),
    "seed": (is_whole, "a whole number", True),
    "global_batch_size": (is_positive, "a whole number above 0", True),
    "train_samples": (is_whole, "a whole number", True),
    "eval_samples": (is_whole, "a whole number", True),
    "opt_name": (is_text, "a text", True),
    "opt_base_learning_rate": (is_number, "a number", True),
    "opt_learning_rate_warmup_epochs": (is_number, "a number", True),
    "opt_learning_rate_schedule": (is_text, "a text", True),
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
        raise ValueError("a key twice")
    return dict(pairs)


def no_constant(name):
    raise ValueError(f"{name} is no number of JSON")


class Checker:
    def __init__(self):
        self.problems = []  # (line, text)
        self.line = 0
        self.time = 0
        self.counts = {}
        self.open = []  # intervals under way, the innermost last
        self.done = []  # intervals that ended, in order
        self.epoch = 0
        self.status = None

    def problem(self, words):
        self.problems.append((self.line, words))

    def read(self, lines):
        for self.line, line in enumerate(lines, 1):
            if not line.startswith(PREFIX):
                self.problem(f"does not begin with {PREFIX!r}")
                continue
            try:
                event = json.loads(line[len(PREFIX):], object_pairs_hook=strict_object,
                                   parse_constant=no_constant)
            except (ValueError, RecursionError) as error:
                self.problem(f"is no JSON: {error}")
                continue
            if self.has_its_fields(event):
                self.take(event)
        self.finish()

    def has_its_fields(self, event):
        if not isinstance(event, dict) or set(event) != set(FIELDS):
            self.problem(f"must have the fields {', '.join(FIELDS)}, and no others")
            return False
        rules = ((is_positive(event["time_ms"]), "time_ms must be a whole number above 0"),
                 (isinstance(event["namespace"], str), "namespace must be a text"),
                 (isinstance(event["metadata"], dict), "metadata must be an object"),
                 (is_text(event["key"]), "key must be a text"))
        for holds, words in rules:
            if not holds:
                self.problem(words)
        return all(holds for holds, _ in rules)

    def take(self, event):
        key, kind = event["key"], event["event_type"]
        if event["time_ms"] < self.time:
            self.problem(f"time_ms goes back by {self.time - event['time_ms']}")
        self.time = event["time_ms"]
        self.counts[key] = self.counts.get(key, 0) + 1
        if self.status is not None:
            self.problem(f"{key} after run_stop")
        name, _, end = key.rpartition("_")
        if name in INTERVALS and end in ("start", "stop"):
            self.take_interval(event, name, end)
        elif kind != POINT:
            self.problem(f"{key} must be {POINT}")
        elif key not in POINTS:
            self.problem(f"{key} is no key of these logs")
        else:
            self.take_point(event)

    def take_point(self, event):
        key = event["key"]
        rule, words, _ = POINTS[key]
        if not rule(event["value"]):
            self.problem(f"{key} is {json.dumps(event['value'])}; it must be {words}")
        if event["value"] is None and not is_text(event["metadata"].get("reason")):
            self.problem(f"{key} is null without a reason in its metadata")
        if key == "eval_accuracy":
            if self.open[-1:] != ["eval"]:
                self.problem("eval_accuracy outside of eval_start and eval_stop")
        elif "run" in self.open or "run" in self.done:
            self.problem(f"{key} after run_start")

    def take_interval(self, event, name, end):
        expected = START if end == "start" else END
        if event["event_type"] != expected:
            self.problem(f"{event['key']} must be {expected}")
        if event["value"] is not None:
            self.problem(f"{event['key']} must have the value null")
        if end == "start":
            inside = self.open[-1] if self.open else None
            if inside != INTERVALS[name]:
                self.problem(f"{event['key']} stands in {inside or 'no interval'}, "
                             f"not in {INTERVALS[name] or 'none'}")
            if name == "run" and "init" not in self.done:
                self.problem("run_start before init_stop")
            self.open.append(name)
        elif self.open[-1:] != [name]:
            self.problem(f"{event['key']} without {name}_start, or across another interval")
        else:
            self.done.append(self.open.pop())
        if name in ("epoch", "eval"):
            self.take_epoch(event, name, end)
        if event["key"] == "run_stop":
            self.take_status(event["metadata"])

    def take_epoch(self, event, name, end):
        number = event["metadata"].get("epoch_num")
        if name == "epoch" and end == "start":
            self.epoch += 1
        if number != self.epoch or isinstance(number, bool):
            self.problem(f"{event['key']} has the epoch_num {json.dumps(number)}; "
                         f"it must be {self.epoch}")

    def take_status(self, metadata):
        self.status = metadata.get("status")
        if self.status not in ("success", "aborted"):
            self.problem(f"run_stop has the status {json.dumps(self.status)}; "
                         "it must be success or aborted")
            self.status = "?"
        if self.status == "aborted" and not is_text(metadata.get("reason")):
            self.problem("run_stop is aborted without a reason in its metadata")

    def finish(self):
        once = [key for key, (_, _, always) in POINTS.items() if always]
        once += ["init_start", "init_stop", "run_start", "run_stop"]
        for key in once:
            if self.counts.get(key, 0) != 1:
                self.problem(f"{key} stands {self.counts.get(key, 0)} times; it must once")
        for key, count in self.counts.items():
            if key in POINTS and key not in once and key != "eval_accuracy" and count > 1:
                self.problem(f"{key} stands {count} times")
        if self.status == "success":
            for key in ("epoch_start", "eval_accuracy"):
                if not self.counts.get(key):
                    self.problem(f"run_stop is success without {key}")
        for name in self.open:
            self.problem(f"{name}_start without {name}_stop")


def check(path):
    """The problems of a file as texts."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    checker = Checker()
    checker.read(text.split("\n")[:-1] if text.endswith("\n") else text.split("\n"))
    if not text.endswith("\n"):
        checker.problem("the last line does not end")
    return [f"{path}:{line}: {words}" for line, words in checker.problems]


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
