#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/smoke_report.py puts the files of a synthetic smoke run into one table and one JSON."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parents[2]
FACTS = {"date": "2000-01-01", "gpu": {"name": "A chip", "driver_version": "1.2"}, "cuda": 13000,
         "cudnn": 91900, "nccl": 22809, "program": "hpcai500 0"}
NCU = '''==PROF== Connected to process 1
"ID","Process ID","Process Name","Host Name","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","1","p","h","apply<f16, 8>(T *, int)","dram__bytes.sum","Mbyte","1,500"
"0","1","p","h","apply<f16, 8>(T *, int)","gpu__time_duration.sum","us","500"
"1","1","p","h","apply<f16, 8>(T *, int)","dram__bytes.sum","Gbyte","0.5"
"1","1","p","h","apply<f16, 8>(T *, int)","gpu__time_duration.sum","ns","500,000"
"2","1","p","h","tiny","gpu__time_duration.sum","us","1"
'''


def rival(variant, speed, precision="fp16", **more):
    return {"variant": variant, "precision": precision, "batch": 256, "images_per_second": speed,
            **more}


def bench(speed, **more):
    return {"precision": "float16", "batch_size": 256, "images_per_second": speed, **more,
            "step_seconds": 0.1, "operations": [
                {"operation": "convolution", "pass": "forward", "in_step_seconds": 0.025},
                {"operation": "convolution", "pass": "forward", "in_step_seconds": 0.05}]}


TESTS = """[ RUN      ] Devices/Relu.Is/cuda_f16
relu_test.cpp:3: Failure
too far
[  FAILED  ] Devices/Relu.Is/cuda_f16, where GetParam() = cuda_f16 (3 ms)
[ RUN      ] Devices/Relu.Is/cuda_f32
[       OK ] Devices/Relu.Is/cuda_f32 (1 ms)
[ RUN      ] Devices/Relu.Is/cuda_tf32
[  SKIPPED ] Devices/Relu.Is/cuda_tf32 (0 ms)
[  FAILED  ] Devices/Relu.Is/cuda_f16, where GetParam() = cuda_f16
"""


class SmokeReport(unittest.TestCase):
    def report(self, parts, files=None):
        """Returns exit code, text and JSON of a run with these parts and files."""
        with tempfile.TemporaryDirectory() as work, tempfile.TemporaryDirectory() as out:
            texts = {"facts.json": json.dumps(FACTS),
                     "parts.tsv": "".join("\t".join(part) + "\n" for part in parts)}
            for name, content in (files or {}).items():
                texts[name] = content if isinstance(content, str) else json.dumps(content)
            pathlib.Path(work, "logs").mkdir()
            for name, text in texts.items():
                pathlib.Path(work, name).write_text(text)
            done = subprocess.run(
                [sys.executable, ROOT / "scripts/smoke_report.py", "report", work, out],
                capture_output=True, text=True, check=False)
            return (done.returncode, pathlib.Path(out, "gpu_smoke.txt").read_text(),
                    json.loads(pathlib.Path(out, "gpu_smoke.json").read_text()))

    def speeds(self, rivals, **more):
        """Returns the row of `mixed` in the table of speeds, and the whole text."""
        _, text, _ = self.report([("bench_mixed_256", "0", "7")],
                                 {"bench_mixed_256.json": bench(5000.0, **more),
                                  "pytorch_fp16.json": {"rows": rivals[:1]},
                                  "pytorch_rest.json": {"rows": rivals[1:]}})
        return next(line for line in text.splitlines() if line.startswith("mixed")).split(), text

    def test_compares_with_the_best_rival_of_the_same_batch_and_type(self):
        row, text = self.speeds([rival("eager", 2000.0), rival("compile", 4000.0),
                                 rival("graphs", 9000.0, precision="bf16"),
                                 {"variant": "compile", "precision": "fp16", "batch": 400,
                                  "error": "no memory"}])
        self.assertEqual(row, ["mixed", "256", "5000.0", "|", "2000.0", "-", "4000.0", "-", "|",
                               "1.250"])
        self.assertIn("best PyTorch: 9000.0 images/s (bf16, batch 256)", text)
        self.assertRegex(text, r"75\.000 ms  75\.0 % convolution forward")
        self.assertNotIn("*", text)

    def test_marks_our_speed_if_the_loss_is_not_finite(self):
        row, text = self.speeds([rival("eager", 2000.0, loss=7.1)], loss=None)
        self.assertEqual(row[2:], ["5000.0*", "|", "2000.0", "-", "-", "-", "|", "2.500"])
        self.assertIn("* the loss was not finite", text)
        self.assertEqual(self.speeds([rival("eager", 2000.0)], loss=7.1)[0][2], "5000.0")

    def test_marks_a_rival_whose_loss_is_not_finite_and_compares_with_it(self):
        row, text = self.speeds([rival("eager", 2000.0, loss=7.1),
                                 rival("graphs", 4000.0, loss=None)])
        self.assertEqual(row[4:], ["2000.0", "4000.0*", "-", "-", "|", "1.250"])
        self.assertIn("* the loss was not finite", text)

    def test_has_the_rates_and_the_detector_of_separate_runs_of_pytorch(self):
        rates = {"copy_bytes_per_second": 4e12, "product_flops": 8e14}
        detector = {**rival("eager", 50.0, precision="bf16_detector"), "batch": 8}
        _, text, _ = self.report(
            [("bench_bf16_8_detector", "0", "7")],
            {"bench_bf16_8_detector.json": {**bench(200.0), "batch_size": 8},
             "pytorch_detector.json": {"torch": "2", "rows": [detector]},
             "pytorch_fp16.json": {"ceilings": rates, "rows": []}})
        self.assertIn("copy 4.00 TB/s, bf16 product 800 TFLOP/s", text)
        self.assertRegex(text, r"bf16_detector +8 +200\.0 \| +50\.0 .* 4\.000\n")

    def test_fails_when_a_part_failed_and_names_the_test(self):
        code, text, whole = self.report(
            [("operators", "exit code 1", "3"), ("memcheck", "skipped: no tool", "0")],
            {"logs/operators.0.log": TESTS, "logs/operators.1.log": "[ RUN      ] A.B\n[       OK ] A.B (0 ms)\n"})
        self.assertEqual(code, 1)
        self.assertIn("4 tests, 1 failed, 1 skipped", text)
        self.assertIn("FAILED Devices/Relu.Is/cuda_f16", text)
        self.assertIn("did not pass: operators;", text)
        failures = whole["tests"]["operators"]["failures"]
        self.assertEqual([one["message"] for one in failures],
                         ["relu_test.cpp:3: Failure\ntoo far"])

    def test_names_the_test_in_which_a_program_died(self):
        log = "\n".join(TESTS.splitlines()[:2])
        code, text, whole = self.report([("operators", "exit code 134", "3")],
                                        {"logs/operators.0.log": log})
        self.assertEqual(code, 1)
        self.assertIn("UNFINISHED Devices/Relu.Is/cuda_f16", text)
        self.assertEqual(whole["tests"]["operators"]["unfinished"][0]["message"],
                         "relu_test.cpp:3: Failure")

    def test_a_part_that_was_skipped_fails_nothing(self):
        self.assertEqual(self.report([("memcheck", "skipped: no tool", "0")])[0], 0)
        self.assertEqual(self.report([("parity", "stopped after 60 s", "60")])[0], 1)

    def test_keeps_the_files_that_are_whole(self):
        _, _, whole = self.report([("bench_mixed_64", "exit code 5", "1")],
                                  {"bench_mixed_64.json": "{", "pytorch_fp16.json": "{"})
        self.assertEqual(whole["bench"], [])
        self.assertIsNone(whole["pytorch"])

    def test_adds_up_kernels_and_their_bytes(self):
        _, text, whole = self.report([("kernel_times", "0", "9")], {"logs/kernel_times.log": NCU})
        first = whole["kernels"][0]
        self.assertEqual(first["launches"], 2)
        self.assertAlmostEqual(first["seconds"], 1e-3)
        self.assertAlmostEqual(first["bytes"], 2e9)
        self.assertIn("2000 GB/s apply<f16, 8>(T *, int)", text)

    def test_leaves_out_rows_of_kernels_that_have_no_number_or_were_cut_off(self):
        row = '"3","1","p","h","tiny","gpu__time_duration.sum"'
        for rest in ',"us","n/a"\n', '\n', ',"us"\n', ',"us","\n', ',"us","7', ',"us","7\n':
            code, _, whole = self.report([("kernel_times", "0", "9")],
                                         {"logs/kernel_times.log": NCU + row + rest})
            self.assertEqual((code, len(whole["kernels"])), (0, 2), rest)
            self.assertEqual(whole["kernels"][1]["launches"], 1, rest)
            self.assertAlmostEqual(whole["kernels"][1]["seconds"], 1e-6)


if __name__ == "__main__":
    unittest.main()
