# SPDX-License-Identifier: Apache-2.0
"""The tests of results: storage, tampering, files of a failed start, and interrupts."""
import json
import os
import pathlib
import random
import re
import signal
import time

from cases import Row, cases_of, must_end
from harness import ROOT, NotRun, Start, must

CASES = {}
STARTS = 20
INTERRUPTS = 10
ONE = ["bagging.M=1", "bagging.P_degree=1", "data.synthetic_samples=4"]  # one step


def case(number, injected):
    def add(function):
        CASES[number] = (injected, function)
        return function
    return add


def full_disk(place):
    """A run with its result on a disk of 200 kB."""
    if os.geteuid() != 0:
        raise NotRun("only root can mount a small disk")
    small = place.folder / "small"
    small.mkdir()
    script = ('mount -t tmpfs -o size=200k none "$1" && shift && '
              'code=0 && { "$@" || code=$?; } && find "$0/small" -name "*.json" '
              '-exec python3 -m json.tool {} /dev/null \\; && exit $code')
    words = ["mpirun", "--bind-to", "none", "-np", "1", str(place.program), "run", "--config",
             "tiny.yaml", "--output", str(small / "result")]
    for change in ONE:
        words += ["--set", change]
    start = Start(["unshare", "-m", "bash", "-c", script, str(place.folder), str(small), *words],
                  place.folder)
    code = start.wait()
    must("No space left" in start.output, f"it reports no full disk: {start.output[-500:]}")
    must("Expecting" not in start.output and "Extra data" not in start.output, "a file is cut")
    must(code not in (0, 137, 139), f"code {code}")
    return code


def killed_in_its_files(place):
    """Kills at file system calls below the result directory; returns the number of killed processes."""
    library = pathlib.Path(os.environ.get("HPCAI500_TEST_PROGRAMS", ROOT / "build/release"))
    library = library / "tests/libfailing_disk.so"
    if not library.exists():
        return 0
    died = 0
    for call in (40, 60, 80, 100, 120, 140, 160):
        output = f"killed-{call}"
        start = place.run(1, ONE, output=output, options=[
            "-x", f"LD_PRELOAD={library}", "-x", f"HPCAI500_DISK_FOLDER={place.folder / output}",
            "-x", "HPCAI500_DISK_FAULT=kill", "-x", f"HPCAI500_DISK_CALL={call}"])
        died += start.wait() == 137
        for path in (place.folder / output).rglob("*.json"):
            json.loads(path.read_text())  # or ValueError
    return died


@case(18, "a disk of 200 kB; a directory that is there, or cannot be made; two jobs with one "
          "directory; kills while files are written")
def result_directory(place, _reference):
    code = full_disk(place)
    must_end(place.run(1, ONE), 0)
    before = (place.folder / "result/result.json").read_bytes()
    must_end(place.run(1, ONE), 2)
    must((place.folder / "result/result.json").read_bytes() == before, "the result has changed")
    must_end(place.run(1, ONE, output="/proc/none/result"), 2)
    both = [place.run(1, ONE, output="shared") for _ in range(2)]
    codes = sorted(start.wait() for start in both)
    must(codes == [0, 2], f"two jobs with one directory end with {codes}")
    must(place.call("verify", str(place.folder / "shared"))[0] == 0, "it does not verify")
    died = killed_in_its_files(place)
    by = cases_of("storage_test", "WriteFileDurably.*:PendingPath.*")
    killed = f"{died} runs killed in a call to the file system left whole files or none" if died else \
        "kills: not run, as tests are not built"
    return Row(f"a full disk ends the run with code {code} and \"No space left\", no file cut; a "
               f"directory that is there stays as it is (code 2); of two jobs one has it, the other "
               f"ends with 2; {killed} ({by})", "the run that cannot write")


@case(19, "results with numbers, predictions, weights, configuration, groups and lines changed")
def tampered(_place, _reference):
    by = cases_of("end_to_end_test", "Tampered*:Repetitions.AreTold*")
    return Row(f"`verify` and `scripts/verify_result` name each, code 10 ({by})", "nothing")


@case(20, f"{STARTS} starts and ends of 2 ranks; 20 runs in one program (`run.repeat`)")
def soak(place, _reference):
    two = ["bagging.M=1", "data.synthetic_samples=4"]
    sessions = place.folder / "tmp"
    sessions.mkdir()
    for number in range(STARTS):
        must_end(place.run(2, two, output=f"start-{number}",
                           environment={"TMPDIR": str(sessions)}), 0)
        must(not place.left_over(), "a process is left")
    names = [path.name for path in sessions.rglob("*") if path.is_file() or path.is_socket()]
    must(not names, f"left: {names}")
    start = place.run(1, [*ONE, "run.repeat=20"], output="repeated")
    descriptors = []

    def has_ended():
        number = place.rank_process(0)
        if number is not None and (place.folder / "repeated").exists():
            runs = len(list((place.folder / "repeated").glob("repetition_*")))
            try:
                descriptors.append((runs, len(os.listdir(f"/proc/{number}/fd"))))
            except OSError:
                pass
        return start.process.poll() is not None

    while not has_ended():
        pass
    must_end(start, 0)
    at = {runs: max(n for r, n in descriptors if r == runs) for runs, _ in descriptors}
    must(at and at.get(max(at)) <= at.get(min(at)) + 2, f"descriptors grow: {at}")
    return Row(f"no process, no file of MPI is left; open files of the {max(at)} runs in one program: "
               f"{at[min(at)]} in the first, {at[max(at)]} in the last. An hour's run, valgrind and "
               "compute-sanitizer: not run", "nothing")


@case(21, f"Ctrl-C to `mpirun` at {INTERRUPTS} random moments of two groups, then `resume`")
def interrupted(place, _reference):
    long = ["bagging.M=2", "bagging.P_degree=1", "workload.epochs=500"]
    must_end(place.run(2, long, output="whole"), 0)
    grace = {"OMPI_MCA_odls_base_sigkill_timeout": "3"}
    progress = place.folder / "result/groups/0/progress.json"
    start = place.run(2, long, environment=grace)
    start.wait_for(lambda: progress.exists() and re.search(r'"step": [1-9]', progress.read_text()),
                   "the first step")
    codes = []
    for _ in range(INTERRUPTS):
        time.sleep(random.uniform(0.5, 3))
        must(start.process.poll() is None, f"the run ended after {len(codes)} interrupts")
        start.process.send_signal(signal.SIGINT)
        start.wait()
        codes.append(place.status())
        start = place.mpirun(2, ["resume", str(place.folder / "result")], environment=grace)
    must_end(start, 0)
    must(codes == [8] * INTERRUPTS, f"status returned {codes}")
    must(place.digests() == place.digests("whole"), "a digest differs")
    must(place.result()["quality"] == place.result("whole")["quality"], "the quality differs")
    return Row("each time `status` returns 8 and every group has its checkpoint; the last `resume` ends "
               "with the digests and the quality of a run that was not interrupted", "nothing")
