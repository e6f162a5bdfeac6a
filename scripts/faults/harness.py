# SPDX-License-Identifier: Apache-2.0
"""Starts the program with injected faults and collects output, files and remaining processes."""
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TIMEOUT_SECONDS = 900  # for one start, on a busy machine

# Segmentation with eight steps of four samples in each group, which takes seconds.
CONFIG = """run: {name: faults, seed: 3, roofline: off, deterministic: true, loss_steps: 1}
workload:
  {kind: climate_segmentation, model: segmentation_net, classes: 4, image_size: 64, image_width: 96,
   channels: 16, target_quality: 0.5, penalty_exponent: 5, epochs: 1}
bagging: {M: 4, P_degree: 2, sampler: none, aggregation: soft_vote, out_of_bag: false}
data: {kind: climate_synthetic, synthetic_samples: 32, synthetic_validation_samples: 6}
training: {batch_size: 4, learning_rate: 0.05, learning_rate_batch: 4, schedule: constant,
           warmup_epochs: 0, precision: fp32}
device: {kind: cpu, threads: 1}
"""


class Failed(Exception):
    """The outcome differs from the expected outcome."""


class NotRun(Exception):
    """A test that cannot run here, with the reason."""


def require(condition, what):
    if not condition:
        raise Failed(what)


class Launch:
    """A process of mpirun or of the program, with its output lines and their times."""

    def __init__(self, words, folder, environment=None):
        self.begin = time.monotonic()
        self.lines = []  # (seconds, text)
        self.process = subprocess.Popen(
            words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace",
            env={**os.environ, **(environment or {})})
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append((time.monotonic() - self.begin, line.rstrip("\n")))

    @property
    def output(self):
        return "\n".join(text for _, text in self.lines)

    def seconds_of(self, pattern):
        """The time of the first matching line, or None."""
        for seconds, text in list(self.lines):
            if re.search(pattern, text):
                return seconds
        return None

    def wait(self, timeout_seconds=TIMEOUT_SECONDS):
        """Wait for the end and all output. Return the exit code, 128 + n for signal n."""
        try:
            code = self.process.wait(timeout_seconds)
        except subprocess.TimeoutExpired as late:
            raise Failed(f"the process has not ended after {timeout_seconds} s") from late
        self.reader.join(30)
        return code if code >= 0 else 128 - code

    def wait_for(self, condition, what, timeout_seconds=TIMEOUT_SECONDS):
        until = time.monotonic() + timeout_seconds
        while not condition():
            require(self.process.poll() is None, f"{what}: the process ended first")
            require(time.monotonic() < until, f"{what}: not within {timeout_seconds} s")
            time.sleep(0.05)


class Workspace:
    """The folder of a test, and its processes, whose arguments contain the folder's name."""

    def __init__(self, program, folder):
        self.program = program
        self.folder = folder
        folder.mkdir(parents=True)
        (folder / "tiny.yaml").write_text(CONFIG)

    def mpirun(self, ranks, words, inject="", recovery=False, options=(), environment=None):
        line = ["mpirun", "--bind-to", "none", "-np", str(ranks)]
        if recovery:
            line.append("--enable-recovery")
        if inject:
            line += ["-x", f"HPCAI500_INJECT={inject}"]
        return Launch([*line, *options, str(self.program), *words], self.folder, environment)

    def run(self, ranks, changes=(), output="result", **options):
        words = ["run", "--config", "tiny.yaml", "--output", str(self.folder / output)]
        for change in changes:
            words += ["--set", change]
        return self.mpirun(ranks, words, **options)

    def call(self, *words, environment=None):
        """(exit code, output) of a single process."""
        start = Launch([str(self.program), *words], self.folder, environment)
        return start.wait(), start.output

    def status(self, output="result"):
        return self.call("status", str(self.folder / output))[0]

    def result(self, output="result"):
        path = self.folder / output / "result.json"
        require(path.exists(), f"{output}/result.json is missing")
        return json.loads(path.read_text())

    def digests(self, output="result"):
        """The digests by group, for finished groups."""
        found = {}
        for path in sorted((self.folder / output / "groups").glob("*/record.json")):
            record = json.loads(path.read_text())
            if not record["record"]["failure"]:
                found[int(path.parent.name)] = record["training_digest"]
        return found

    def processes(self):
        """PIDs of the processes with this folder in their arguments or as working directory."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace")
                here = os.readlink(entry / "cwd")
            except OSError:
                continue
            if str(self.folder) in words or here == str(self.folder):
                found.append(int(entry.name))
        return found

    def rank_process(self, world_rank):
        for number in self.processes():
            try:
                environment = pathlib.Path(f"/proc/{number}/environ").read_bytes().split(b"\0")
                program = os.readlink(f"/proc/{number}/exe")
            except OSError:
                continue
            is_rank = f"OMPI_COMM_WORLD_RANK={world_rank}".encode() in environment
            if is_rank and program == str(self.program):
                return number
        return None

    def remaining_processes(self):
        """Waits up to 10 s for the end of all processes; returns those that still run."""
        until = time.monotonic() + 10
        while self.processes() and time.monotonic() < until:
            time.sleep(0.2)
        return self.processes()

    def clean_up(self):
        """Ends the remaining processes and returns their number."""
        left = self.processes()
        for number in left:
            try:
                os.kill(number, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return len(left)


def gtest(program, pattern, environment=None):
    """(cases that passed, output) of a test program of build/release."""
    folder = pathlib.Path(os.environ.get("HPCAI500_TEST_PROGRAMS", ROOT / "build/release"))
    path = folder / program
    if not path.exists():
        raise NotRun(f"{program} is not built")
    start = Launch([str(path), f"--gtest_filter={pattern}"], ROOT, environment)
    code = start.wait(3600)
    passed = re.search(r"\[  PASSED  \] (\d+) test", start.output)
    failed = re.findall(r"^\[  FAILED  \] (\w[\w./]*)", start.output, re.M)
    require(code == 0 and passed, f"{program} --gtest_filter='{pattern}' failed: "
         + (", ".join(failed) or start.output.strip().rpartition("\n")[2]))
    require(int(passed[1]) > 0, f"{program} has no test '{pattern}'")
    return int(passed[1]), start.output
