#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/experiments/figures.py makes of made-up runs the numbers that its figures state."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"


def run(models, degree, epochs, samples=16, **other):
    """A result of `models` groups whose epochs took these seconds, all groups alike."""
    group = {"epoch_seconds": epochs, "samples_trained": samples * len(epochs),
             "iterations": 2 * len(epochs), "final_training_loss": 1.0}
    return {"topology": {"ranks": models * degree, "groups": models, "degree": degree},
            "work": {"groups": [group] * models}, "flops": {"training_per_sample": 1e9},
            "communication": {"sent_bytes_per_step": 1000, "out_of_node_bytes_per_step": 3000},
            "scores": {"flops": models * 1e9, "vflops": models * 5e8, "penalty_coefficient": 0.5},
            "time": {"training_seconds": sum(epochs)},
            "quality": {"ensemble": 0.6, "members_mean": 0.5,
                        "confidence_interval": {"low": 0.55, "high": 0.65}}, **other}


class Figures(unittest.TestCase):
    def draw(self, figure, runs, files=None, **parameters):
        """The figure's JSON, and the words and shapes of its SVG."""
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

    def test_a_library_s_all_reduce_has_a_time_but_no_place_on_the_axis_of_bytes(self):
        unknown = run(1, 4, [1, 4, 4],
                      communication={"sent_bytes_per_step": 1, "out_of_node_bytes_per_step": None})
        runs = {"series=all_reduce,per_host=1,precision=fp32": unknown,
                "series=all_reduce,per_host=1,precision=int8": run(1, 4, [1, 1, 1])}
        document, words, drawing = self.draw("communication", runs, hosts=4)
        self.assertEqual([point["speed_up_over_fp32"] for point in document["points"]], [1, 4])
        self.assertIn("int8", words)
        self.assertNotIn("fp32", words)
        self.assertEqual(len(list(drawing.iter(SVG + "circle"))), 2)  # the point and its legend

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
        readings = "seconds\tmean\tleast\n" + "".join(f"{time}\t0.9\t0.8\n" for time in range(10))
        document, words, _ = self.draw("fig6", {"models=4": run(4, 2, [1, 1])},
                                       {"utilisation.tsv": readings})
        self.assertEqual(len(document["points"]), 10)
        self.assertIn("median 90 %", " ".join(words))

    def test_settings_are_compared_with_the_default(self):
        runs = {"series=default,seed=1": run(1, 2, [1, 2, 2]),
                "series=lars,seed=1": run(1, 2, [1, 4, 4])}
        document, _, _ = self.draw("settings", runs, ranks=2, epochs=3)
        self.assertEqual([(point["series"], point["speed"]) for point in document["points"]],
                         [("default", 1.0), ("lars", 0.5)])


if __name__ == "__main__":
    unittest.main()
