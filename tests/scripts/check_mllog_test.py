#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/check_mllog.py accepts a log that hpcai500 wrote and finds each of many errors."""
import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import check_mllog  # noqa: E402
SETTINGS = {"seed": 3, "global_batch_size": 8, "train_samples": 24, "eval_samples": 12,
            "opt_name": "sgd", "opt_base_learning_rate": 0.1,
            "opt_learning_rate_warmup_epochs": 0.0, "opt_learning_rate_schedule": "constant",
            "opt_weight_decay": 0.0001, "opt_momentum": 0.9, "label_smoothing": 0.0,
            "gradient_accumulation_steps": 1}


def good_log():
    events = []

    def add(kind, key, value=None, **metadata):
        events.append({"namespace": "", "time_ms": 1000 + 10 * len(events), "event_type": kind,
                       "key": key, "value": value, "metadata": {"group": 0, **metadata}})

    for key, value in (("benchmark", "resnet50_v1.5"), ("division", "custom"),
                       ("platform", "1 x cpu")):
        add("POINT_IN_TIME", f"submission_{key}", value)
    for key in ("org", "status"):
        add("POINT_IN_TIME", f"submission_{key}", None, reason="not told")
    add("INTERVAL_START", "init_start")
    for key, value in SETTINGS.items():
        add("POINT_IN_TIME", key, value)
    add("INTERVAL_END", "init_stop")
    add("INTERVAL_START", "run_start")
    for epoch in (1, 2):
        add("INTERVAL_START", "epoch_start", epoch_num=epoch)
        add("INTERVAL_END", "epoch_stop", epoch_num=epoch)
    add("INTERVAL_START", "eval_start", epoch_num=2)
    add("POINT_IN_TIME", "eval_accuracy", 0.5, epoch_num=2)
    add("INTERVAL_END", "eval_stop", epoch_num=2)
    add("INTERVAL_END", "run_stop", status="success")
    return events


def text_of(events):
    return "".join(f":::MLLOG {json.dumps(event)}\n" for event in events)


class CheckMllog(unittest.TestCase):
    def check(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "result_0.txt"
            path.write_text(text)
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                code = check_mllog.main([str(path)])
        return code, out.getvalue()

    def expect(self, words, change, resort=True):
        """Expects that `change` of a correct log is found and reported with these words."""
        events = good_log()
        change(events)
        for index, event in enumerate(events if resort else []):
            event["time_ms"] = 1000 + index
        code, out = self.check(text_of(events))
        self.assertEqual(code, 1, out)
        self.assertIn(words, out)

    def at(self, events, key):
        return next(index for index, event in enumerate(events) if event["key"] == key)

    def event(self, events, key):
        return events[self.at(events, key)]

    def move(self, events, key, before):
        event = events.pop(self.at(events, key))
        events.insert(self.at(events, before), event)

    def test_passes_a_log_as_it_should_be(self):
        self.assertEqual(self.check(text_of(good_log())), (0, ""))

    def test_passes_a_group_that_failed_in_its_second_epoch(self):
        events = good_log()
        first = self.at(events, "epoch_stop")
        stop = {**events[-1], "metadata": {"status": "aborted", "reason": "no memory"}}
        self.assertEqual(self.check(text_of(events[:first + 1] + [stop])), (0, ""))

    def test_finds_each_required_key_that_is_missing_or_twice(self):
        keys = [key for key in (event["key"] for event in good_log())
                if key != "opt_momentum" and not key.startswith(("epoch_", "eval_st", "eval_a"))]
        self.assertGreater(len(keys), 18)
        for key in keys:
            self.expect(f"{key} occurs 0 times", lambda e, k=key: e.pop(self.at(e, k)))
            self.expect(f"{key} occurs 2 times",
                        lambda e, k=key: e.insert(self.at(e, k), dict(self.event(e, k))))

    def test_finds_values_of_another_type(self):
        for key, value in (("seed", "3"), ("seed", -1), ("global_batch_size", 0),
                           ("global_batch_size", 8.5), ("train_samples", True), ("opt_name", 1),
                           ("opt_base_learning_rate", "0.1"), ("eval_accuracy", 1.5),
                           ("opt_base_learning_rate", 10 ** 400),
                           ("eval_accuracy", None), ("submission_benchmark", "")):
            self.expect(f"{key} is {json.dumps(value)}",
                        lambda e, k=key, v=value: self.event(e, k).update(value=v))
        self.expect("null without a reason",
                    lambda e: self.event(e, "submission_org").update(metadata={}))

    def test_finds_what_is_out_of_order(self):
        self.expect("run_start before init_stop",
                    lambda e: (self.move(e, "run_start", "init_start")))
        self.expect("seed after run_start", lambda e: self.move(e, "seed", "epoch_start"))
        self.expect("epoch_start is in init",
                    lambda e: self.move(e, "epoch_start", "init_stop"))
        self.expect("epoch_stop without epoch_start",
                    lambda e: self.move(e, "epoch_stop", "epoch_start"))
        self.expect("eval_accuracy outside", lambda e: self.move(e, "eval_accuracy", "eval_start"))
        self.expect("after run_stop", lambda e: self.move(e, "run_stop", "eval_start"))
        self.expect("epoch_start is in epoch",
                    lambda e: e.pop(self.at(e, "epoch_stop")))
        self.expect("goes back by 5",
                    lambda e: e[7].update(time_ms=e[6]["time_ms"] - 5), resort=False)

    def test_finds_wrong_ends(self):
        def metadata(**values):
            return lambda e: self.event(e, "run_stop").update(metadata=values)
        self.expect("it must be success or aborted", metadata(status="done"))
        self.expect("it must be success or aborted", metadata())
        self.expect("aborted without a reason", metadata(status="aborted"))
        self.expect("success without eval_accuracy",
                    lambda e: e.pop(self.at(e, "eval_accuracy")))
        self.expect("it must be 1",
                    lambda e: self.event(e, "epoch_start")["metadata"].update(epoch_num=2))

    def test_finds_wrong_forms(self):
        self.expect("must be INTERVAL_START",
                    lambda e: self.event(e, "run_start").update(event_type="POINT_IN_TIME"))
        self.expect("must be POINT_IN_TIME",
                    lambda e: self.event(e, "seed").update(event_type="INTERVAL_START"))
        self.expect("and no others", lambda e: self.event(e, "seed").update(more=1))
        self.expect("and no others", lambda e: self.event(e, "seed").pop("namespace"))
        self.expect("is not a key of these logs",
                    lambda e: self.event(e, "opt_momentum").update(key="opt_luck"))
        self.expect("must have the value null",
                    lambda e: self.event(e, "run_start").update(value=1))
        self.expect("time_ms must be",
                    lambda e: self.event(e, "seed").update(time_ms="x"), resort=False)
        good = text_of(good_log())
        for broken, words in ((good.replace(":::MLLOG", "::MLLOG", 1), "does not begin with"),
                              (good.replace("{", "", 1), "is not JSON"),
                              (good.replace('"value": 0.5', '"value": NaN'), "is not JSON"),
                              (good.replace('"key"', '"value": 1, "key"', 1), "a key twice"),
                              (good[:-1], "the last line has no newline"), ("", "occurs 0 times")):
            code, out = self.check(broken)
            self.assertEqual(code, 1, words)
            self.assertIn(words, out)

    def test_says_when_it_cannot_read(self):
        done = subprocess.run([sys.executable, ROOT / "scripts/check_mllog.py", "/nowhere"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("/nowhere", done.stderr)


if __name__ == "__main__":
    unittest.main()
