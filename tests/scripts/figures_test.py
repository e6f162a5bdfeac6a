#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/experiments/figures.py makes of synthetic runs the numbers that its figures state, in charts
that can be read, and the scripts next to it refuse wrong arguments."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts/experiments"))
import chart  # noqa: E402
import sample_use  # noqa: E402
SVG = "{http://www.w3.org/2000/svg}"


def run(models, degree, epochs, samples=16, **other):
    """Makes a result of `models` equal groups whose epochs took these seconds."""
    group = {"epoch_seconds": epochs, "samples_trained": samples * len(epochs),
             "iterations": 2 * len(epochs), "final_training_loss": 1.0}
    return {"topology": {"ranks": models * degree, "groups": models, "degree": degree},
            "verdict": {"status": "CUSTOM", "exit_code": 0},
            "workload": {"precision": "fp32", "classes": 8},
            "work": {"groups": [group] * models}, "flops": {"training_per_sample": 1e9},
            "communication": {"sent_bytes_per_step": 1000, "out_of_node_bytes_per_step": 3000},
            "scores": {"flops": models * 1e9, "vflops": models * 5e8, "penalty_coefficient": 0.5},
            "time": {"training_seconds": sum(epochs)},
            "quality": {"ensemble": 0.6, "members_mean": 0.5,
                        "confidence_interval": {"low": 0.55, "high": 0.65}}, **other}


class Figures(unittest.TestCase):
    def draw(self, figure, runs, files=None, **parameters):
        """Returns the figure's JSON, and the words and shapes of its SVG."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "runs").mkdir()
            for case, result in runs.items():
                (folder / "runs" / f"{case}.json").write_text(json.dumps(result))
            (folder / "runs.tsv").write_text("".join(f"{case}\t0.5\t1\n" for case in runs))
            parameters = {"workload": "image_classification", **parameters}
            (folder / "parameters.tsv").write_text(
                "".join(f"{key}\t{value}\n" for key, value in parameters.items()))
            for file, content in (files or {}).items():
                (folder / file).write_text(content)
            subprocess.run([sys.executable, ROOT / "scripts/experiments/figures.py", figure, folder],
                           check=True, capture_output=True)
            drawing = xml.etree.ElementTree.parse(folder / f"{figure}.svg").getroot()
            words = [node.text for node in drawing.iter(SVG + "text")]
            return json.loads((folder / f"{figure}.json").read_text()), words, drawing

    def test_efficiency_is_flops_by_ranks_and_those_of_one_rank(self):
        runs = {"series=bagging,ranks=1": run(1, 1, [9, 2, 2, 2]),
                "series=bagging,ranks=4": run(4, 1, [9, 2, 2.5, 3]),
                "series=data_parallel,ranks=1": run(1, 1, [9, 2, 2, 2]),
                "series=data_parallel,ranks=4": run(1, 4, [9, 8, 8, 8], samples=64)}
        document, words, _ = self.draw("fig9", runs)
        found = {(point["series"], point["ranks"]): point["efficiency"]
                 for point in document["points"]}
        self.assertAlmostEqual(found["bagging", 1], 1)
        self.assertAlmostEqual(found["bagging", 4], 0.8)
        self.assertAlmostEqual(found["data_parallel", 4], 0.25)
        self.assertIn("bagging", words)
        self.assertEqual(document["load_before_run"]["series=bagging,ranks=1"], 0.5)

    def test_the_slowest_group_sets_the_pace(self):
        result = run(2, 1, [1, 2, 2])
        slow = dict(result["work"]["groups"][0], epoch_seconds=[1, 4, 4])
        result["work"]["groups"] = [result["work"]["groups"][0], slow]
        document, _, _ = self.draw("fig9", {"series=bagging,ranks=1": run(1, 1, [1, 2, 2]),
                                            "series=bagging,ranks=2": result})
        self.assertAlmostEqual(document["points"][1]["efficiency"], 0.5)

    def test_a_setting_s_speed_up_is_over_the_original_of_as_many_ranks(self):
        runs = {"series=original,ranks=2": run(1, 2, [1, 2, 2]),
                "series=communication_fp16,ranks=2": run(1, 2, [1, 1, 1]),
                "series=original,ranks=4": run(2, 2, [1, 3, 3]),
                "series=communication_fp16,ranks=4": run(2, 2, [1, 2, 2])}
        document, _, _ = self.draw("fig8", runs, degree=2)
        found = {(point["series"], point["ranks"]): point["speed_up"]
                 for point in document["points"]}
        self.assertAlmostEqual(found["communication_fp16", 2], 2)
        self.assertAlmostEqual(found["communication_fp16", 4], 1.5)

    def test_steps_are_those_of_the_group_that_takes_longest_for_one(self):
        result = run(2, 1, [1, 4, 4])  # 2 steps an epoch
        long = dict(result["work"]["groups"][0], epoch_seconds=[1, 6, 6], iterations=12)
        result["work"]["groups"] = [result["work"]["groups"][0], long]
        document, _, _ = self.draw("fig9", {"series=bagging,ranks=1": run(1, 1, [1, 2, 2]),
                                            "series=bagging,ranks=2": result})
        self.assertEqual([point["step_seconds"] for point in document["points"]], [1, 2])

    def test_bars_are_the_slowest_and_fastest_epoch_of_the_slowest_group(self):
        result = run(2, 1, [9, 1, 2, 3])
        slow = dict(result["work"]["groups"][0], epoch_seconds=[9, 2, 4, 5])
        result["work"]["groups"] = [result["work"]["groups"][0], slow]
        document, _, drawing = self.draw("fig9", {"series=bagging,ranks=1": run(1, 1, [1, 2, 2]),
                                                  "series=bagging,ranks=2": result})
        self.assertEqual([point["spread"] for point in document["points"]], [[1, 1], [0.5, 1.25]])
        self.assertEqual(sum("h8 m-4 0 V" in path.get("d") for path in drawing.iter(SVG + "path")),
                         1)

    def test_the_original_is_drawn_first(self):
        runs = {f"series={name},ranks=2": run(1, 2, [1, 2, 2])
                for name in ("communication_fp16", "original", "precision_bf16")}
        document, _, _ = self.draw("fig8", runs, degree=2)
        self.assertEqual([point["series"] for point in document["points"]],
                         ["original", "communication_fp16", "precision_bf16"])

    def test_no_figure_is_drawn_from_a_run_that_failed(self):
        failed = run(1, 1, [1, 2, 2], verdict={"status": "PARTIAL", "exit_code": 7})
        with self.assertRaises(subprocess.CalledProcessError) as caught:
            self.draw("fig9", {"series=bagging,ranks=1": failed})
        self.assertIn(b"the run is PARTIAL", caught.exception.stderr)

    def test_times_of_a_precision_stand_side_by_side(self):
        runs = {"series=all_reduce,per_host=1,precision=fp32": run(1, 4, [1, 4, 4]),
                "series=all_reduce,per_host=1,precision=int8": run(1, 4, [1, 1, 1]),
                "series=torus_2d,per_host=1,precision=int8": run(1, 4, [1, 1, 1])}
        document, words, drawing = self.draw("communication", runs, hosts=4)
        found = {(point["series"], point["precision"]): point["speed_up_over_fp32"]
                 for point in document["points"]}
        self.assertEqual(found["all_reduce, 1 a host", "int8"], 4)
        self.assertIsNone(found["torus_2d, 1 a host", "int8"])
        self.assertIn("int8", words)
        self.assertNotIn("fp16", words)
        self.assertEqual(len(list(drawing.iter(SVG + "circle"))), 3)  # one for the legend
        self.assertEqual(len(list(drawing.iter(SVG + "rect"))), 3)  # and the background

    def test_speed_of_a_model_stands_against_the_vote_s_quality(self):
        document, words, _ = self.draw("fig7", {"models=4": run(4, 1, [4, 4, 4]),
                                                "models=1": run(1, 4, [1, 1, 1])})
        self.assertEqual([point["images_per_second_of_a_model"] for point in document["points"]],
                         [4, 16])
        self.assertIn("M 4, P 1", words)

    def test_whole_runs_and_readings_over_time_are_drawn(self):
        document, words, _ = self.draw("fig5", {"ranks=2": run(1, 2, [1, 1]),
                                                "ranks=8": run(4, 2, [1, 1])})
        self.assertEqual([point["vflops"] for point in document["points"]], [5e8, 2e9])
        self.assertIn("GFLOP/s", words)
        self.assertNotIn("guessing", " ".join(words))
        readings = "seconds\tmean\tleast\n" + "".join(f"{time}\t0.9\t0.8\n" for time in range(10))
        document, words, _ = self.draw("fig6", {"models=4": run(4, 2, [1, 1])},
                                       {"utilisation.tsv": readings})
        self.assertEqual(len(document["points"]), 10)
        self.assertIn("median of the middle three fifths 90 %", " ".join(words))
        document, _, _ = self.draw("fig6", {"models=4": run(4, 2, [1, 1])},
                                   {"utilisation.tsv": "seconds\tmean\tleast\n1\t0.9\t0.8\n"})
        self.assertEqual(len(document["points"]), 1)

    def test_a_quality_that_guessing_reaches_is_named(self):
        guess = run(2, 2, [1, 1])
        guess["quality"]["confidence_interval"]["low"] = 0.12
        _, words, _ = self.draw("fig5", {"ranks=2": run(1, 2, [1, 1]), "ranks=4": guess})
        self.assertIn("VFLOPS of 4 ranks from a quality no better than guessing", " ".join(words))

    def test_settings_are_compared_with_the_default(self):
        runs = {"series=default,seed=1": run(1, 2, [1, 2, 2]),
                "series=lars,seed=1": run(1, 2, [1, 4, 4])}
        document, _, _ = self.draw("settings", runs, ranks=2, epochs=3)
        self.assertEqual([(point["series"], point["speed"]) for point in document["points"]],
                         [("default", 1.0), ("lars", 0.5)])


class Charts(unittest.TestCase):
    def test_no_two_of_24_series_look_the_same(self):
        looks = {chart.marker(index, 0, 0) for index in range(24)}
        self.assertEqual(len(looks), 24)

    def test_labels_of_points_at_one_place_do_not_cover_each_other(self):
        names = ["M 4, P 1", "M 2, P 2", "M 1, P 4"]
        drawing = chart.Drawing(chart.Chart("", "", "", "", [
            chart.Series(name, [(1, 1)], [name]) for name in names]))
        list(drawing.lines())
        labels = drawing.boxes[-3:]
        self.assertEqual(sum(chart.overlap(one, other) for one in labels for other in labels
                             if one is not other), 0)

    def test_all_is_inside_the_drawing(self):
        text = chart.svg(chart.Chart("title", "conditions, " * 30, "x", "y", [
            chart.Series(f"a series with a long name {index}", [(index, index)], ranges=[(0, 99)])
            for index in range(20)], x_ticks=[5, 6], x_names=["five", "six"]))
        root = xml.etree.ElementTree.fromstring(text)
        width, height = float(root.get("width")), float(root.get("height"))
        for node in root.iter(SVG + "text"):
            start = node.get("text-anchor") == "start"
            room = 0.5 * float(node.get("font-size")) * len(node.text) if start else 0
            self.assertLessEqual(float(node.get("x")) + room, width)
            self.assertLessEqual(float(node.get("y")), height)
        for circle in root.iter(SVG + "circle"):
            self.assertTrue(chart.LEFT <= float(circle.get("cx")) <= width)

    def test_round_numbers_span_what_is_drawn(self):
        for low, high in ((0, 1), (0, 7.3), (0.2, 0.9), (0, 0), (0, 282.2), (-3, 2e9)):
            ticks = chart.round_ticks(low, high)
            self.assertLessEqual(ticks[0], low)
            self.assertGreaterEqual(ticks[-1], high)
            self.assertTrue(2 <= len(ticks) <= 9, ticks)


class UseOfShares(unittest.TestCase):
    def test_a_group_s_time_is_its_own_count_or_that_of_its_processes(self):
        with tempfile.TemporaryDirectory() as name:
            group = pathlib.Path(name)
            (group / "cpu.stat").write_text("nr_periods 7\n")
            (group / "cgroup.procs").write_text("")
            self.assertIsNone(sample_use.processor_seconds(group))
            (group / "cgroup.procs").write_text("999999999\n")  # has just ended
            self.assertIsNone(sample_use.processor_seconds(group))
            (group / "cgroup.procs").write_text(f"{os.getpid()}\n")
            times = os.times()
            self.assertAlmostEqual(sample_use.processor_seconds(group), times.user + times.system,
                                   delta=0.05)
            (group / "cpu.stat").write_text("usage_usec 1500000\n")
            self.assertEqual(sample_use.processor_seconds(group), 1.5)
            (group / "cpuacct.usage").write_text("2500000000\n")
            self.assertEqual(sample_use.processor_seconds(group), 2.5)


class Arguments(unittest.TestCase):
    """Scripts report errors before they create files; /bin/true replaces the program."""

    def refused(self, script, *arguments):
        done = subprocess.run([ROOT / "scripts" / script, "--program", "/bin/true", *arguments],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        return done.stderr

    def test_wrong_ones_are_refused(self):
        for script, option, value in (
                ("fig5.sh", "--models", "2 1"), ("fig5.sh", "--degree", "3"),
                ("fig5.sh", "--share", "0.05"), ("fig5.sh", "--settings", "a b"),
                ("fig6.sh", "--seconds", "0"),
                ("fig7.sh", "--models", "3"), ("fig7.sh", "--size", "16"),
                ("fig8.sh", "--epochs", "1"), ("fig8.sh", "--degree", "1"),
                ("fig9.sh", "--ranks", "2 4"), ("fig9.sh", "--ranks", "1 4 4"),
                ("communication.sh", "--precisions", "fp32 int4"),
                ("communication.sh", "--rate", "0mbit"), ("settings.sh", "--only", "nothing"),
                ("settings.sh", "--ranks", "3")):
            self.assertIn(option, self.refused(f"experiments/{script}", option, value))
        self.assertIn("batch of 32", self.refused("experiments/fig7.sh", "--ranks", "6",
                                                  "--models", "6 3 2"))
        self.assertIn("'--none'", self.refused("experiments/fig5.sh", "--none", "1"))
        self.assertIn("'--'", self.refused("experiments/fig5.sh", "--", "1"))
        self.assertIn("needs a value", self.refused("experiments/fig5.sh", "--share"))
        self.assertIn("--hosts", self.refused("multihost_test.sh", "--hosts", "08"))

    def test_shares_are_of_cores_that_are_there(self):
        models = 1 + len(os.sched_getaffinity(0)) // 8
        message = self.refused("experiments/fig8.sh", "--models", str(models), "--degree", "8",
                               "--share", "1")
        self.assertIn(f"{8 * models} ranks with 1 of a core", message)


if __name__ == "__main__":
    unittest.main()
