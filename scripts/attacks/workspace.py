# SPDX-License-Identifier: Apache-2.0
"""The folder of the attacks: data, a genuine result, copies of it to forge, and calls of both verifiers."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from forgery import Forgery
from oracle import seal_by_hand

ROOT = pathlib.Path(__file__).resolve().parents[2]
TIMEOUT_SECONDS = 300  # for one call, on a busy machine
MAX_CORRECTIONS = 20
# Files that `score` writes. To seal a forgery is to write them so that they agree with its other files.
SEALED = ("result.json", "summary.txt", "report.html", "manifest.sha256", "environment.json", "mllog", "evaluation")

# A ResNet-50 with an eighth of the channels, which trains for a second.
CONFIG = """run: {name: attack, seed: 1, level: custom, keep_checkpoints: 1}
workload:
  {kind: image_classification, model: resnet50_v1.5, classes: 4, image_size: 32, backbone_width: 8,
   target_quality: 0.25, penalty_exponent: 5, epochs: 2}
bagging: {M: 2, P_degree: 1, sampler: bootstrap, aggregation: soft_vote}
data: {kind: image_folder, path: data/train, validation_path: data/val}
training:
  {batch_size: 8, learning_rate: 0.1, schedule: constant, warmup_epochs: 0, precision: fp32}
device: {kind: cpu, threads: 1}
"""


class Failed(Exception):
    """The outcome differs from the expected one, or the attack could not be prepared."""


class NotRun(Exception):
    """A row that cannot run here, with the reason."""


def require(condition, what):
    if not condition:
        raise Failed(what)


class Workspace:
    """`folder` has the configuration and data/; calls run in it unless another folder is given."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.output = ""  # of the last call
        (folder / "tiny.yaml").write_text(CONFIG)
        self.expect(0, "data", "generate", "photographs", "--output", "data", "--classes", "4", "--size", "40",
                    "--training-per-class", "24", "--validation-per-class", "25")
        self.expect(0, *self.run_words("genuine"), ranks=2)

    def start(self, *words, ranks):
        """A process of mpirun, without waiting for it."""
        return subprocess.Popen(["mpirun", "--bind-to", "none", "-np", str(ranks), str(self.program), *words],
                                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)

    def call(self, *words, ranks=0, folder=None, environment=None, program=None):
        """The exit code; 128 + n for signal n. `ranks` above 0 starts mpirun."""
        line = ["mpirun", "--bind-to", "none", "-np", str(ranks)] if ranks else []
        for name in environment if ranks and environment else ():
            line += ["-x", name]
        try:
            done = subprocess.run([*line, str(program or self.program), *map(str, words)], cwd=folder or self.folder,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  env={**os.environ, **(environment or {})}, timeout=TIMEOUT_SECONDS, check=False)
        except subprocess.TimeoutExpired as late:
            raise Failed(f"{words[0]} has not ended after {TIMEOUT_SECONDS} s") from late
        self.output = done.stdout.decode(errors="replace")
        return done.returncode if done.returncode >= 0 else 128 - done.returncode

    def expect(self, code, *words, text="", **options):
        """Requires the exit code and `text` in the output."""
        got = self.call(*words, **options)
        command = " ".join(map(str, words[:2]))
        require(got == code, f"{command}: exit code {got}, expected {code}: {self.output[-400:]}")
        require(text in self.output, f"{command}: expected '{text}' in: {self.output[-400:]}")

    @staticmethod
    def run_words(output, *settings):
        words = ["run", "--config", "tiny.yaml", "--output", output]
        for setting in settings:
            words += ["--set", setting]
        return words

    def copy(self, name, source="genuine", folder=None):
        """A copy of a result, in `folder` if given."""
        target = (folder or self.folder) / name
        shutil.copytree(self.folder / source, target)
        return target

    def forge(self, name, source="genuine", folder=None):
        """A copy of a result without the files of SEALED."""
        target = self.copy(name, source, folder)
        for sealed in SEALED:
            path = target / sealed
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        return Forgery(target, self.folder / source)

    def verify(self, directory):
        """Exit codes of both verifiers."""
        directory = self.folder / directory
        second = subprocess.run([sys.executable, ROOT / "scripts/verify_result", directory], timeout=TIMEOUT_SECONDS,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return self.call("verify", directory), second.returncode

    def score(self, forged):
        """The exit code of `score`, in the folder whose data the forgery used. Changes digits that it rejects."""
        for _ in range(MAX_CORRECTIONS):
            code = self.call("score", forged.directory.name, folder=forged.directory.parent)
            line = re.search(r': (\S+\.json): line (\d+) is "', self.output)
            if code != 10 or not line:
                break
            forged.change_digits(line[1], int(line[2]))
        return code

    def judge(self, forged):
        """Seals a forgery with `score`, and returns the verifiers' exit codes.

        `score` refuses what `verify` rejects. The forgery is then sealed without the program, for the other verifier.
        """
        code = self.score(forged)
        if code == 0:
            return self.verify(forged.directory)
        require(code == 10, f"score ends with {code}: {self.output[-300:]}")
        return code, seal_by_hand(forged)

    def verify_with_data(self, directory, replay=0):
        """The exit code of `verify --data`, with `--replay` for `replay` steps."""
        return self.call("verify", directory, "--data", self.folder / "data",
                         *(["--replay", replay] if replay else []))

    def with_other_tests(self, name):
        """A folder with its own data/val and the training data, for another version of the test samples."""
        folder = self.folder / name
        (folder / "data").mkdir(parents=True)
        (folder / "data/train").symlink_to(self.folder / "data/train")
        shutil.copy(self.folder / "tiny.yaml", folder)
        return folder

    def samples_digest(self, folder):
        """The digest of the samples in `folder`, from a run that uses them."""
        self.expect(0, *self.run_words("digest", "workload.epochs=1"), ranks=2, folder=folder)
        return Forgery(folder / "digest").read_json("launch.json")["samples_sha256"]
