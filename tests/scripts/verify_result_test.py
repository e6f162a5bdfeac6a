#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/verify_result accepts only numbers and records in the form in which the program writes them."""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts/verify_result"))
from arithmetic import penalty_coefficient  # noqa: E402  (needs the path)
from findings import Findings, MalformedFile, without_legal_value  # noqa: E402
from json_reader import canonical_float  # noqa: E402
from launch import INT8, MAX_FRACTION, MAX_OF_PEAK, PEAKS, THREAD_PEAK  # noqa: E402
from probabilities import ProbabilityTask  # noqa: E402
from rules import PROBLEMS  # noqa: E402
from segmentation import Segmentation  # noqa: E402
from tasks import check_numbers  # noqa: E402
from verdict import wrong_clocks  # noqa: E402


class Numbers(unittest.TestCase):
    def test_the_shortest_digits_of_a_number_are_right(self):
        for text in ("0.5", "-1.25", "3.0", "0.796621941", "1e-05", "2.5e+20"):
            self.assertEqual(canonical_float(text), float(text))

    def test_more_are_right_where_the_printer_has_found_no_shorter_ones(self):
        for text in ("0.7966219409999999", "0.10000000000000001"):
            self.assertEqual(canonical_float(text), float(text))

    def test_other_ways_to_write_a_number_are_refused(self):
        for text in ("0.50", "5e-1", "1.0e-05", "00.5", "0.79662194100", "0.100000000000001e1", "1E-05"):
            with self.assertRaisesRegex(MalformedFile, "as the program writes it", msg=text):
                canonical_float(text)


class Peaks(unittest.TestCase):
    """The first implementation has the same numbers."""

    source = (ROOT / "src/verification/speed_check.cpp").read_text()

    def test_of_devices(self):
        rows = re.findall(r'\{"(\w+)", ([\d.]+)\}', self.source)
        self.assertEqual([(name, float(peak)) for name, peak in rows],
                         [(name, float(peak)) for name, peak in PEAKS.items()])

    def test_and_margins(self):
        numbers = {name: float(value) for name, value
                   in re.findall(r"constexpr double (\w+) = ([\d.]+);", self.source)}
        self.assertEqual([numbers[name] for name in ("kThreadPeak", "kInt8Factor", "kMaxFraction", "kMaxOfPeak")],
                         [THREAD_PEAK, INT8, MAX_FRACTION, MAX_OF_PEAK])


class Penalty(unittest.TestCase):
    def test_is_eq_8(self):
        self.assertEqual(penalty_coefficient(0.5, 0.25, 5), 32)

    def test_has_no_value_where_it_is_not_finite(self):
        for numbers in ((0.5, 1e-62, 5), (0.5, 1e-4, 100), (-0.5, 0.5, 0.5), (0.5, 0.0, 1)):
            self.assertIsNone(penalty_coefficient(*numbers))


class Problems(unittest.TestCase):
    def test_are_those_of_the_program(self):
        source = (ROOT / "src/verification/verdict.cpp").read_text()
        source = source.partition("/// Returns the problem of")[0]
        tables = {name: [(int(rule), key, value) for rule, key, value
                         in re.findall(r'\{(\d+), "([^"]+)", "([^"]+)"\}', rows)]
                  for name, rows in re.findall(r"FixedSetting (k\w+)\[\] = \{(.*?)\};", source, re.S)}
        problems = source.split("    Problem{")[1:]
        self.assertEqual(len(problems), len(PROBLEMS))
        for text in problems:
            values = dict(re.findall(r"\.(\w+) =\s+(?:config::\w+::)?(\"[^\"]*\"|\w+)", text))
            data_kind, data = re.fullmatch(r'"(\w+) \((.*)\)"', values["data_description"]).groups()
            self.assertEqual(data_kind, values["data_kind"])
            self.assertEqual(
                PROBLEMS[values["kind"], values["problem_class"]],
                (data_kind, data, int(values["training_samples"]), int(values["validation_samples"]),
                 values.get("may_have_more_samples") == "true", values.get("samples_sha256", "").strip('"') or None,
                 tables[values["settings"]]))


class LegalValues(unittest.TestCase):
    def test_are_hidden_but_not_their_source(self):
        self.assertEqual(without_legal_value("seed is 4; must be 3, according to config"),
                         "seed is 4, which is wrong, according to config")
        self.assertEqual(without_legal_value("has 3 steps; must have 4"), "has 3 steps, which is wrong")
        self.assertEqual(without_legal_value("is missing"), "is missing")


class Predictions(unittest.TestCase):
    def check(self, values, classes=2):
        """(whether only one model can have these predictions, the findings)."""
        task = ProbabilityTask.__new__(ProbabilityTask)
        task.classes, task.rows, task.findings = classes, len(values) // classes, Findings("")
        return task.check_rows("predictions.npy", values), [text for _, text in task.findings.rows]

    def test_probabilities_are_accepted(self):
        self.assertEqual(self.check([0.25, 0.75, 1.0, 0.0]), (True, []))

    def test_certain_or_missing_ones_may_be_those_of_two_models(self):
        nan = float("nan")
        self.assertEqual(self.check([1.0, 0.0, nan, nan]), (False, []))

    def test_other_numbers_are_refused(self):
        for row in ([-0.5, 1.5], [0.5, 0.6], [float("nan"), 0.5], [float("inf"), 0.5]):
            _, texts = self.check([0.25, 0.75] + row)
            self.assertEqual(len(texts), 1, row)
            self.assertTrue(texts[0].startswith("sample 1 has the minimum "), texts)


class Folders(unittest.TestCase):
    def findings(self, *samples):
        task = ProbabilityTask.__new__(ProbabilityTask)
        task.labels, task.labels_file, task.findings = [label for _, label in samples], "labels.npy", Findings("")
        task.check_folders([name for name, _ in samples])
        return [text for _, text in task.findings.rows]

    def test_are_numbered_by_name(self):
        self.assertEqual(self.findings(("b/1", 3), ("a/1", 0), ("é/1", 4), ("c/x", -1), ("a/2", 0)), [])

    def test_have_one_class_each_in_their_order(self):
        for label in (0, 2, 3, 5):
            self.assertEqual(self.findings(("a/1", 0), ("c/1", 3), ("b/1", label), ("b/2", 1)),
                             [f"label of sample {3 if label == 2 else 2} is {1 if label == 2 else label}, which is "
                              "not the class of its folder b"])


class Clocks(unittest.TestCase):
    def wrong(self, seconds, name="clock:boottime"):
        """Reasons if a clock advanced by `seconds` in 1000 s of UTC."""
        readings = [{"utc_seconds": 50000.0, "value": 7.0}, {"utc_seconds": 51000.0, "value": 7.0 + seconds}]
        return wrong_clocks({1: [{"name": name, "readings": readings}]})

    def test_that_disagree_with_utc_are_named(self):
        self.assertEqual(self.wrong(100), ["clock:boottime of group 1 advanced by 100.0 s while UTC advanced by "
                                           "1000.0 s: not rankable"])
        self.assertEqual([len(self.wrong(seconds)) for seconds in (988, 1012)], [1, 1])

    def test_must_have_finite_times(self):
        readings = [{"utc_seconds": -1e308, "value": -1e308}, {"utc_seconds": 1e308, "value": 1e308}]
        self.assertEqual(len(wrong_clocks({0: [{"name": "clock:monotonic", "readings": readings}]})), 1)

    def test_may_be_corrected_by_ntp(self):
        self.assertEqual(self.wrong(1010) + self.wrong(990) + self.wrong(100, "training:steps"), [])


class NumbersOfATask(unittest.TestCase):
    NUMBERS = {"ensemble": 0.5, "ensemble_majority": None, "ensemble_pixel_accuracy": 0.75, "segments": []}

    def differences(self, stored):
        """Keys whose stored value is not the required one, for segmentation."""
        found = []

        def compare(key, is_stored, wanted):
            if is_stored != wanted:
                found.append(key)

        check_numbers(compare, lambda task: task.ensemble_keys, Segmentation, stored, self.NUMBERS)
        return found

    def test_its_own_numbers_must_be_equal(self):
        self.assertEqual(self.differences(self.NUMBERS), [])
        self.assertEqual(self.differences({**self.NUMBERS, "ensemble": 0.25}), ["ensemble"])

    def test_the_numbers_of_other_tasks_may_be_there_without_a_value(self):
        others = {"ensemble_top_5": None, "categories": []}
        self.assertEqual(self.differences({**self.NUMBERS, **others}), [])

    def test_a_number_of_another_task_is_refused(self):
        others = {"ensemble_top_5": 0.5, "categories": [{"name": "ship"}]}
        self.assertEqual(self.differences({**self.NUMBERS, **others}), ["categories", "ensemble_top_5"])


if __name__ == "__main__":
    unittest.main()
