#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/gpu_smoke.sh runs stand-ins for the programs, on a machine with or without a GPU."""
import os
import pathlib
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).parents[2]
FILES = {"gpu_smoke.txt", "gpu_smoke.json", "plans.json", "logs.tar.gz"}
PASS = 'echo "[ RUN      ] A.B"; echo "[       OK ] A.B (0 ms)"'
DIE = 'echo "[ RUN      ] A.Dies"; kill -ABRT $$'
HANG = 'echo "[ RUN      ] A.Hangs"; sleep 8'
BENCH = """echo '{"chosen": 1}' >plans.json
echo '{"batch_size": 256, "images_per_second": 9000, "step_seconds": 1, "operations": []}'"""
MPIRUN = """while [ "$1" != --output ]; do shift; done; mkdir -p "$2/groups/0"
printf 'step,epoch,samples,end_seconds\\n0,0,400,1\\n1,1,400,1.5\\n' >"$2/groups/0/steps.csv"
echo 'RESULT CUSTOM quality=1'"""
# Python with an emulated GPU; the variable GPU is its name.
FACTS = """import os, smoke_report
known = {"hpcai500": "hpcai500 0", "nvidia-smi": os.environ.get("GPU", "A chip")}
smoke_report.gpu_problem = lambda: None
smoke_report.output_of = lambda command, *_: known.get(command)
smoke_report.main()"""
PYTHON = f"""if [ "$2" = facts ]; then
    export PYTHONPATH={ROOT}/scripts PYTHONDONTWRITEBYTECODE=1
    exec {sys.executable} -c '{FACTS}' "${{@:2}}"
fi
exec {sys.executable} "$@\""""


class GpuSmoke(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.out = self.root / "out"
        (self.root / "bin").mkdir()
        (self.root / "scripts").symlink_to(ROOT / "scripts")
        (self.root / "bin/env.sh").write_text(f"PATH={self.root}/bin:$PATH\n")
        self.program("python", PYTHON)

    def program(self, name, body):
        """Makes a program that records each of its executions."""
        path = self.root / "bin" / name
        path.write_text(f"#!/bin/bash\necho {name} >>{self.root}/starts\n{body}\n")
        path.chmod(0o755)

    def starts(self, name):
        return (self.root / "starts").read_text().split().count(name)

    def start(self, parts, seconds, **environment):
        return subprocess.Popen(
            [ROOT / "scripts/gpu_smoke.sh", "--parts", parts, "--seconds", str(seconds), self.root,
             self.out], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "PYTHON": str(self.root / "bin/python"), "TMPDIR": str(self.root),
                 **environment}, start_new_session=True)

    def run_parts(self, parts, seconds=60, **environment):
        """Returns the exit code, the report, and the standard error of the script."""
        script = self.start(parts, seconds, **environment)
        errors = script.communicate(timeout=60)[1]
        return script.returncode, (self.out / "gpu_smoke.txt").read_text(), errors

    def result(self, name):
        with tarfile.open(self.out / "logs.tar.gz") as archive:
            lines = archive.extractfile("./parts.tsv").read().decode().splitlines()
        results = [line.split("\t")[1] for line in lines if line.startswith(name + "\t")]
        self.assertEqual(len(results), 1, lines)
        return results[0]

    def test_parts_that_die_or_hang_fail_alone_and_only_they_are_repeated(self):
        self.program("cuda_test", PASS)
        self.program("device_test", f'if [ "$GTEST_SHARD_INDEX" = 3 ]; then {DIE}; fi; {PASS}')
        self.program("graph_test", HANG)
        self.program("hpcai500", BENCH)
        parts = "engine,operators,networks,bench_mixed_256"
        code, text, errors = self.run_parts("bench_mixed_256," + parts, seconds=4)
        self.assertEqual((code, errors), (1, ""))
        self.assertIn("did not pass: operators, networks, bench_mixed_256;", text)
        self.assertIn("UNFINISHED A.Dies", text)
        self.assertEqual(self.result("engine"), "0")
        self.assertEqual(self.result("operators"), "exit code 134")
        self.assertRegex(self.result("networks"), "stopped after [34] s")
        self.assertEqual(self.result("bench_mixed_256"), "no time left")
        self.program("device_test", PASS)
        self.program("graph_test", PASS)
        code, text, errors = self.run_parts(parts)
        self.assertEqual((code, errors), (0, ""))
        self.assertNotIn("UNFINISHED", text)
        self.assertRegex(text, r"mixed +256 +9000\.0")
        self.assertEqual([self.starts(name) for name in ("cuda_test", "device_test", "hpcai500")],
                         [1, 20, 1])
        self.assertEqual({path.name for path in self.out.iterdir()}, FILES)

    def test_trainings_have_results_and_speeds(self):
        self.program("hpcai500", "true")
        self.program("mpirun", MPIRUN)
        code, text, errors = self.run_parts("training*")
        self.assertEqual((code, errors), (0, ""))
        for name in "training", "training_detector", "training_speed":
            self.assertIn(f"\n{name}: RESULT CUSTOM quality=1\n", text)
        self.assertIn("\ntraining_speed: epoch 2: 800 images/s\n", text)

    def test_validate_has_its_verdict(self):
        self.program("hpcai500", "echo VALIDATE PASSED \"$@\"")
        code, text, errors = self.run_parts("validate_*")
        self.assertEqual((code, errors), (0, ""))
        for precision in "mixed", "bf16":
            self.assertRegex(text, rf"\nvalidate_{precision}: VALIDATE PASSED validate --config .* --set "
                                   rf"training.precision={precision} --quick --runs 10\n")

    def test_input_has_the_tables_of_both_sizes_and_a_result(self):
        table = r"files, read  16  1  80000  9.50\nWith data.decoder gpu, a step does not wait.\n"
        self.program("hpcai500", f'case $1 in roofline) printf "{table}" ;; esac')
        log = 'echo "the GPU decoded 4000 training images" >"$2/groups/0/log.txt"'
        self.program("mpirun", f"{MPIRUN}\n{log}")
        code, text, errors = self.run_parts("input")
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(text.count("input: files, read  16  1  80000  9.50\n"), 2, text)
        self.assertEqual(text.count("a step does not wait."), 2)
        self.assertIn("\ninput: RESULT CUSTOM quality=1\n", text)

    def test_a_report_that_fails_fails_the_run(self):
        self.program("cuda_test", PASS)
        self.assertEqual(self.run_parts("nccl")[0], 0)
        self.assertEqual(self.run_parts("nccl")[0], 0, "a part that has passed is selected, too")
        self.program("python", f'[ "$2" != report ] || exit 5; {PYTHON}')
        self.assertEqual(self.run_parts("nccl")[0], 1)

    def test_waits_for_every_process_of_a_test_program(self):
        self.program("graph_test", "sleep 1; " + PASS)
        # A function that replaces the command and is as slow as the command on a busy machine.
        slow = '() { local ids=$(builtin jobs "$@") id; for id in $ids; do echo $id; sleep 0.1; done; }'
        code, text, _ = self.run_parts("networks", **{"BASH_FUNC_jobs%%": slow})
        self.assertEqual((code, self.result("networks")), (0, "0"), text)
        self.assertIn("2 tests, 0 failed", text)

    def test_a_process_that_is_killed_fails_its_part(self):
        shell = "$(cut -d ' ' -f 4 /proc/$PPID/stat)"  # which notes the program's exit code
        self.program("graph_test", f'{PASS}; [ "$GTEST_SHARD_INDEX" = 0 ] || kill -KILL {shell}')
        self.assertEqual(self.run_parts("networks")[0], 1)
        self.assertEqual(self.result("networks"), "a process was killed")

    def test_a_run_that_is_killed_leaves_what_it_has(self):
        self.program("hpcai500", BENCH)
        self.program("cuda_test", HANG)
        self.run_parts("bench_mixed_256")
        script = self.start("nccl,bench_bf16_256,engine", 60)
        try:
            while self.starts("cuda_test") == 0:
                self.assertIsNone(script.poll())
                time.sleep(0.02)
        finally:
            os.killpg(script.pid, signal.SIGKILL)
            script.communicate()
        self.assertEqual({path.name for path in self.out.iterdir()}, FILES)
        self.assertRegex((self.out / "gpu_smoke.txt").read_text(), r"mixed +256 +9000\.0")
        self.assertEqual(self.result("bench_mixed_256"), "0")

    def test_a_run_that_is_killed_in_its_first_part_can_be_continued(self):
        self.program("cuda_test", HANG)
        script = self.start("nccl", 60)
        try:
            while not (self.root / "starts").exists() or self.starts("cuda_test") == 0:
                self.assertIsNone(script.poll())
                time.sleep(0.02)
        finally:
            os.killpg(script.pid, signal.SIGKILL)
            script.communicate()
        self.program("cuda_test", PASS)
        self.assertEqual(self.run_parts("nccl")[0], 0)

    def test_a_run_that_is_asked_to_end_takes_its_programs_with_it(self):
        self.program("cuda_test", "sleep 3; echo survivor >>" + str(self.root / "starts"))
        self.program("hpcai500", "sleep 3; echo survivor >>" + str(self.root / "starts"))
        for part, program in ("engine", "cuda_test"), ("bench_mixed_256", "hpcai500"):
            script = self.start(part, 60)
            while not (self.root / "starts").exists() or self.starts(program) == 0:
                self.assertIsNone(script.poll())
                time.sleep(0.02)
            begin = time.monotonic()
            script.terminate()
            script.communicate()
            self.assertEqual(script.returncode, 143)
            self.assertLess(time.monotonic() - begin, 2.5)
        time.sleep(3)
        self.assertEqual(self.starts("survivor"), 0)

    def test_refuses_a_folder_of_something_else(self):
        self.out.mkdir()
        script = self.start("engine", 60)
        self.assertIn("is not of an earlier run", script.communicate()[1])
        self.assertEqual(script.returncode, 2)
        self.assertEqual(list(self.out.iterdir()), [])

    def test_refuses_a_folder_of_another_program_or_gpu(self):
        def refused(program, engine, chip):
            self.program("hpcai500", program)
            (self.root / "lib/libhpcai_cuda.so").write_text(engine)
            code, text, errors = self.run_parts("nccl,engine", GPU=chip)
            self.assertEqual((code, text), (2, before))
            of = r"hpcai500 0 \(SHA-256 [0-9a-f]{12}\) on "
            self.assertRegex(errors, f"out has results of {of}A chip; this run is of {of}{chip}\n$")

        (self.root / "lib").mkdir()
        (self.root / "lib/libhpcai_cuda.so").write_text("engine")
        self.program("hpcai500", BENCH)
        self.program("cuda_test", PASS)
        before = self.run_parts("nccl")[1]
        refused("true", "engine", "A chip")
        refused(BENCH, "another engine", "A chip")
        refused(BENCH, "engine", "Another chip")
        self.assertEqual(self.starts("cuda_test"), 1)

    def test_refuses_parts_that_do_not_exist_and_seconds_that_are_no_number(self):
        for parts, seconds, message in [("engin", 60, "--parts 'engin' selects no part"),
                                        ("", 60, "--parts '' selects no part"),
                                        ("engine", "4s", "needs a positive integer, not '4s'"),
                                        ("engine", "", "needs a positive integer, not ''"),
                                        ("engine", 0, "needs a positive integer, not '0'")]:
            script = self.start(parts, seconds)
            self.assertIn(message, script.communicate()[1])
            self.assertEqual(script.returncode, 2)


if __name__ == "__main__":
    unittest.main()
