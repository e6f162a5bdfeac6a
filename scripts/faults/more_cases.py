# SPDX-License-Identifier: Apache-2.0
"""The tests of results: storage, tampering, files of a failed start, and interrupts."""
import json
import os
import pathlib
import random
import re
import signal
import time

from cases import Row, case, cases_of, require_exit_code
from harness import ROOT, NotRun, Launch, require

STARTS = 20
INTERRUPTS = 10
ONE_STEP = ["bagging.M=1", "bagging.P_degree=1", "data.synthetic_samples=4"]  # one step


def full_disk(workspace):
    """Runs with the result on a disk of 200 kB. Returns the exit code."""
    if os.geteuid() != 0:
        raise NotRun("only root can mount a small disk")
    small = workspace.folder / "small"
    small.mkdir()
    script = ('mount -t tmpfs -o size=200k none "$1" && shift && '
              'code=0 && { "$@" || code=$?; } && find "$0/small" -name "*.json" '
              '-exec python3 -m json.tool {} /dev/null \\; && exit $code')
    words = ["mpirun", "--bind-to", "none", "-np", "1", str(workspace.program), "run", "--config",
             "tiny.yaml", "--output", str(small / "result")]
    for change in ONE_STEP:
        words += ["--set", change]
    start = Launch(["unshare", "-m", "bash", "-c", script, str(workspace.folder), str(small), *words],
                  workspace.folder)
    code = start.wait()
    require("No space left" in start.output, f"the program reports no full disk: {start.output[-500:]}")
    require("Expecting" not in start.output and "Extra data" not in start.output, "a JSON file is truncated")
    require(code not in (0, 137, 139), f"code {code}")
    return code


def kill_during_writes(workspace):
    """Kills at file system calls below the result directory; returns the number of killed processes."""
    library = pathlib.Path(os.environ.get("HPCAI500_TEST_PROGRAMS", ROOT / "build/release"))
    library = library / "tests/libfailing_disk.so"
    if not library.exists():
        return 0
    kill_count = 0
    for call in (40, 60, 80, 100, 120, 140, 160):
        output = f"killed-{call}"
        start = workspace.run(1, ONE_STEP, output=output, options=[
            "-x", f"LD_PRELOAD={library}", "-x", f"HPCAI500_DISK_FOLDER={workspace.folder / output}",
            "-x", "HPCAI500_DISK_FAULT=kill", "-x", f"HPCAI500_DISK_CALL={call}"])
        kill_count += start.wait() == 137
        for path in (workspace.folder / output).rglob("*.json"):
            json.loads(path.read_text())  # or ValueError
    return kill_count


@case(18, "a disk of 200 kB; an existing directory, or one that cannot be created; two jobs with one "
          "directory; kills while files are written")
def result_directory(workspace, _reference):
    code = full_disk(workspace)
    require_exit_code(workspace.run(1, ONE_STEP), 0)
    before = (workspace.folder / "result/result.json").read_bytes()
    require_exit_code(workspace.run(1, ONE_STEP), 2)
    require((workspace.folder / "result/result.json").read_bytes() == before, "the result has changed")
    require_exit_code(workspace.run(1, ONE_STEP, output="/proc/none/result"), 2)
    both = [workspace.run(1, ONE_STEP, output="shared") for _ in range(2)]
    codes = sorted(start.wait() for start in both)
    require(codes == [0, 2], f"two jobs with one directory end with {codes}")
    require(workspace.call("verify", str(workspace.folder / "shared"))[0] == 0, "verify rejects the result")
    kill_count = kill_during_writes(workspace)
    by = cases_of("storage_test", "WriteFileDurably.*:PendingPath.*")
    killed = f"{kill_count} runs killed in a file system call left complete files or none" if kill_count else \
        "kills: not run, because the tests are not built"
    return Row(f"a full disk ends the run with code {code} and \"No space left\", no file is truncated; an "
               f"existing directory is unchanged (code 2); of two jobs one gets the directory, the other "
               f"ends with 2; {killed} ({by})", "the run that cannot write")


@case(19, "results with numbers, predictions, weights, configuration, groups and lines changed")
def tampered(_place, _reference):
    by = cases_of("end_to_end_test", "Tampered*:Repetitions.AreDetected*")
    return Row(f"`verify` and `scripts/verify_result` name each, code 10 ({by})", "nothing")


@case(20, f"{STARTS} starts and ends of 2 ranks; 20 runs in one program (`run.repeat`)")
def soak(workspace, _reference):
    two = ["bagging.M=1", "data.synthetic_samples=4"]
    sessions = workspace.folder / "tmp"
    sessions.mkdir()
    for number in range(STARTS):
        require_exit_code(workspace.run(2, two, output=f"start-{number}",
                           environment={"TMPDIR": str(sessions)}), 0)
        require(not workspace.remaining_processes(), "a process is left")
    names = [path.name for path in sessions.rglob("*") if path.is_file() or path.is_socket()]
    require(not names, f"remaining files: {names}")
    start = workspace.run(1, [*ONE_STEP, "run.repeat=20"], output="repeated")
    descriptors = []

    def has_ended():
        number = workspace.rank_process(0)
        if number is not None and (workspace.folder / "repeated").exists():
            runs = len(list((workspace.folder / "repeated").glob("repetition_*")))
            try:
                descriptors.append((runs, len(os.listdir(f"/proc/{number}/fd"))))
            except OSError:
                pass
        return start.process.poll() is not None

    while not has_ended():
        pass
    require_exit_code(start, 0)
    at = {runs: max(n for r, n in descriptors if r == runs) for runs, _ in descriptors}
    require(at and at.get(max(at)) <= at.get(min(at)) + 2, f"descriptors grow: {at}")
    return Row(f"no process and no file of MPI remains; open files of the {max(at)} runs in one program: "
               f"{at[min(at)]} in the first, {at[max(at)]} in the last. An hour's run, valgrind and "
               "compute-sanitizer: not run", "nothing")


@case(21, f"Ctrl-C to `mpirun` at {INTERRUPTS} random moments of two groups, then `resume`")
def interrupted(workspace, _reference):
    long = ["bagging.M=2", "bagging.P_degree=1", "workload.epochs=500"]
    require_exit_code(workspace.run(2, long, output="whole"), 0)
    grace = {"OMPI_MCA_odls_base_sigkill_timeout": "3"}
    progress = workspace.folder / "result/groups/0/progress.json"
    start = workspace.run(2, long, environment=grace)
    start.wait_for(lambda: progress.exists() and re.search(r'"step": [1-9]', progress.read_text()),
                   "the first step")
    codes = []
    for _ in range(INTERRUPTS):
        time.sleep(random.uniform(0.5, 3))
        require(start.process.poll() is None, f"the run ended after {len(codes)} interrupts")
        start.process.send_signal(signal.SIGINT)
        start.wait()
        codes.append(workspace.status())
        start = workspace.mpirun(2, ["resume", str(workspace.folder / "result")], environment=grace)
    require_exit_code(start, 0)
    require(codes == [8] * INTERRUPTS, f"status returned {codes}")
    require(workspace.digests() == workspace.digests("whole"), "a digest differs")
    require(workspace.result()["quality"] == workspace.result("whole")["quality"], "the quality differs")
    return Row("each time `status` returns 8 and every group has its checkpoint; the last `resume` ends "
               "with the digests and the quality of a run that was not interrupted", "nothing")
