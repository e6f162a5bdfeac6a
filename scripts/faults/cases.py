# SPDX-License-Identifier: Apache-2.0
"""The numbered tests: each injects a fault into a run, checks the outcome, and reports it."""
import dataclasses
import json
import os
import re
import shutil
import signal
import time

from harness import Failed, NotRun, gtest, require

INJECTED = r"^hpcai500: injected in step"
RECOVERY = {"recovery": True}
WATCHED = ["run.first_step_timeout_seconds=60", "run.step_timeout_seconds=30",
           "run.group_timeout_seconds=300"]
OTHERS_OF_1 = "group 1; the other digests equal those of a run without a fault"
CASES = {}


@dataclasses.dataclass
class Row:
    """The outcome of a test, for the table."""
    observed: str
    lost: str
    seconds: float | None = None  # to detect the fault; None: nothing is detected


def case(number, injected):
    def add(function):
        CASES[number] = (injected, function)
        return function
    return add


def detection_seconds(start, pattern):
    """Seconds from the injection to the first line that reports it."""
    begin, end = start.seconds_of(INJECTED), start.seconds_of(pattern)
    require(begin is not None, "nothing was injected")
    require(end is not None, f"no line matches '{pattern}'")
    return max(0.0, end - begin)


def require_exit_code(start, code):
    got = start.wait()
    require(got == code, f"exit code {got}, expected {code}")


def require_partial_result(workspace, reference, lost, words):
    """Require status and record PARTIAL, all patterns `words` in the reasons, and, for groups other than
    `lost`, the digests of a run without a fault. Return the number of finished groups."""
    require(workspace.status() == 7, f"status exits with {workspace.status()}, expected 7")
    verdict = workspace.result()["verdict"]
    require(verdict["status"] == "PARTIAL" and verdict["exit_code"] == 7, f"verdict {verdict}")
    reasons = "\n".join(verdict["reasons"])
    for word in words:
        require(re.search(word, reasons, re.M), f"no reason matches '{word}': {reasons}")
    expected = {group: digest for group, digest in reference().items() if group != lost}
    digests = workspace.digests()
    require(set(digests) <= set(expected) and digests == {g: expected[g] for g in digests},
            "a digest differs from the run without a fault")
    return len(digests)


def require_no_processes(workspace):
    left = workspace.remaining_processes()
    require(not left, f"processes are left: {left}")


@case(1, "a rank of group 1 of 4 killed (SIGKILL) in step 5; `--enable-recovery`")
def rank_killed(workspace, reference):
    start = workspace.run(8, WATCHED, inject="kill@1:1:5", **RECOVERY)
    start.wait()
    finished = require_partial_result(workspace, reference, 1, [r"^group 1: .*rank 1 \(world rank 3 on .*has died"])
    require(finished == 3, f"{finished} groups finished")
    require_no_processes(workspace)
    reason = next(r for r in workspace.result()["verdict"]["reasons"] if r.startswith("group 1: "))
    return Row(f"PARTIAL, 3 of 4, `status` exits with 7; reason: \"{reason}\"",
               OTHERS_OF_1,
               detection_seconds(start, "group 1 failed: "))


@case(2, "both ranks of group 1 killed (SIGKILL) after step 5 once the other groups had finished; no "
         "recovery")
def rank_killed_without_recovery(workspace, reference):
    others = [workspace.folder / f"result/groups/{group}/record.json" for group in (0, 2, 3)]
    start = workspace.run(8, ["run.step_timeout_seconds=3600"],
                      inject="stop@1:1:5")
    start.wait_for(lambda: all(path.exists() for path in others), "the other groups finish")
    victims = [workspace.rank_process(2), workspace.rank_process(3)]
    require(None not in victims, "the ranks of group 1 are not found")
    signal_sent = time.monotonic()
    for victim in victims:
        os.kill(victim, signal.SIGKILL)
    require_exit_code(start, 137)
    seconds = time.monotonic() - signal_sent
    require_no_processes(workspace)
    require(not (workspace.folder / "result/result.json").exists(), "result.json exists")
    require(sorted(workspace.digests()) == [0, 2, 3], f"{sorted(workspace.digests())} are stored")
    times = [path.stat().st_mtime_ns for path in others]
    scored = score_finished_groups(workspace)
    require_exit_code(workspace.mpirun(8, ["resume", str(workspace.folder / "result")]), 0)
    require(workspace.digests() == reference(), "a digest differs from the run without a fault")
    require([path.stat().st_mtime_ns for path in others] == times, "a finished group was trained again")
    return Row(f"mpirun ends the job with 137; the files of the 3 finished groups are complete{scored}; "
               "`resume` trains only group 1 and ends with the digests of a run without a fault",
               "the steps of group 1", seconds)


def score_finished_groups(workspace):
    if not re.search("^  score ", workspace.call("--help")[1], re.M):
        return ""
    copy = workspace.folder / "scored"
    shutil.copytree(workspace.folder / "result", copy)
    code, output = workspace.call("score", str(copy), "--allow-partial")
    require(code == 7, f"score exits with {code}: {output[-300:]}")
    require("RESULT PARTIAL" in output, "score prints no PARTIAL result")
    return "; `score --allow-partial` votes with them (PARTIAL, 3 of 4)"


@case(3, "rank 0 of the job killed (SIGKILL) in step 5; `--enable-recovery`")
def first_rank_killed(workspace, reference):
    start = workspace.run(8, WATCHED, inject="kill@0:0:5", **RECOVERY)
    start.wait()
    finished = require_partial_result(workspace, reference, 0, [r"^group 0: .*rank 0 \(world rank 0 on "])
    require(finished == 3, f"{finished} groups finished")
    require_no_processes(workspace)
    return Row("another leader evaluates the ensemble and writes the result: PARTIAL, 3 of 4, "
               "`status` exits with 7", "group 0; the other digests equal those of a run without a fault",
               detection_seconds(start, "group 0 failed: "))


def check_hung_leaders(workspace):
    """Run jobs without recovery, where an exit ends all ranks: a hanging rank must not exit first."""
    soon = ["run.first_step_timeout_seconds=60", "run.step_timeout_seconds=10",
            "run.group_timeout_seconds=20"]
    start = workspace.run(4, [*soon, "bagging.M=2"], inject="hang@1:0:2", output="leader")
    require_exit_code(start, 7)
    require(workspace.status("leader") == 7, "status of the run with a hung leader does not exit with 7")
    reasons = "\n".join(workspace.result("leader")["verdict"]["reasons"])
    require(re.search(r"^group 1: .*rank 0 \(world rank 2 on .*hangs", reasons, re.M),
            f"no reason names the hung leader: {reasons}")
    start = workspace.run(2, [*soon, "bagging.M=1"], inject="hang@0:0:2", output="only")
    require_exit_code(start, 6)
    start = workspace.run(2, [*soon, "bagging.M=2", "bagging.P_degree=1"],
                      inject="hang@0:0:2,hang@1:0:2", output="all")
    require_exit_code(start, 6)
    require_no_processes(workspace)
    return ("; without recovery a leader whose main thread hangs is also named (PARTIAL, 1 of 2), "
            "and the job ends with 6 if it led the only group or if the ranks of all groups hang")


@case(4, "a rank of group 1 of 4 stopped (SIGSTOP) in step 5; `--enable-recovery`")
def rank_stopped(workspace, reference):
    start = workspace.run(8, WATCHED, inject="stop@1:1:5", **RECOVERY)
    start.wait()
    finished = require_partial_result(workspace, reference, 1,
                               [r"^group 1: .*rank 1 \(world rank 3 on .*does not answer"])
    require(finished == 3, f"{finished} groups finished")
    flights = sorted((workspace.folder / "result/groups/1/flight").glob("rank-*.json"))
    require([flight.name for flight in flights] == ["rank-0.json"], f"flight records {flights}")
    require(json.loads(flights[0].read_text())["world_rank"] == 2, "the flight record is from another rank")
    require_no_processes(workspace)
    return Row("PARTIAL, 3 of 4, `status` exits with 7; the flight record of the other rank names the "
               "operation for which that rank waited; mpirun returns and no process is left" +
               check_hung_leaders(workspace),
               OTHERS_OF_1,
               detection_seconds(start, "group 1 failed: "))


@case(5, "every group throws in step 2")
def all_groups_fail(workspace, _reference):
    start = workspace.run(4, ["bagging.M=2"], inject="throw@0:0:2,throw@1:1:2")
    require_exit_code(start, 5)
    require(workspace.status() == 5, "status does not exit with 5")
    result = workspace.result()
    reasons = result["verdict"]["reasons"]
    require(result["verdict"]["status"] == "INVALID", "the verdict is not INVALID")
    require([r[:8] for r in reasons] == ["group 0:", "group 1:"], f"reasons {reasons}")
    require(result["scores"]["vflops"] is None, "the result has a score")
    require_no_processes(workspace)
    return Row(f"INVALID with both reasons (\"{reasons[0]}\"), no score, code 5", "both groups",
               detection_seconds(start, r"group \d failed: "))


@case(6, "an exception in a loader thread of group 1 in step 3")
def loader_throws(workspace, reference):
    start = workspace.run(4, ["bagging.M=2"], inject="loader@1:1:3")
    require_exit_code(start, 7)
    require("terminate called" not in start.output, "the program ended by std::terminate")
    finished = require_partial_result(workspace, reference, 1, ["^group 1: injected into a loader thread"])
    require(finished == 1, f"{finished} groups finished")
    require_no_processes(workspace)
    return Row("PARTIAL, 1 of 2, with the exception's message, code 7; every thread is joined",
               OTHERS_OF_1, None)


@case(7, "a NaN in one gradient of one rank of group 1, before its all-reduce in step 5, in fp32")
def gradient_is_nan(workspace, reference):
    start = workspace.run(4, ["bagging.M=2"], inject="nan@1:0:5")
    require_exit_code(start, 7)
    finished = require_partial_result(workspace, reference, 1, ["^group 1: training diverged: .*step (5|6)"])
    require(finished == 1, f"{finished} groups finished")
    reason = next(r for r in workspace.result()["verdict"]["reasons"] if r.startswith("group 1: "))
    seconds = detection_seconds(start, "group 1 failed: training diverged")
    step = re.search(r"step (\d)", reason)[1]
    named = "the step is named" if step == "5" else \
        "the named step is the next one, whose loss is the first to be NaN"
    return Row(f"group 1 ends as diverged on both ranks, {named}; PARTIAL, code 7. With a loss scale: "
               "not run, as fp16 needs a GPU", "group 1", seconds)


@case(8, "one bit of a parameter flipped on one rank in step 3, with `run.audit_steps: 1`; of 2 "
         "ranks, and of 3")
def bit_flipped(workspace, _reference):
    start = workspace.run(4, ["bagging.M=2", "run.audit_steps=1"], inject="flip@1:1:3", output="two")
    require_exit_code(start, 9)
    two = workspace.result("two")["work"]["groups"][1]["audit"]
    require(two["diverged_at_step"] == 4 and len(two["ranks"]) == 2, f"audit {two}")
    seconds = detection_seconds(start, "group 1 failed: replica audit after step 4")
    require_exit_code(workspace.run(3, ["bagging.M=1", "bagging.P_degree=3", "training.batch_size=6",
                           "run.audit_steps=1"], inject="flip@0:1:3", output="three"), 9)
    three = workspace.result("three")["work"]["groups"][0]["audit"]
    require([rank["group_rank"] for rank in three["ranks"]] == [1], f"audit {three}")
    require(workspace.status("two") == 9 and workspace.status("three") == 9, "status does not exit with 9")
    return Row("INVALID by rule 8, code 9, at the end of that step: of 2 ranks both are named, of 3 "
               "only the changed one. On a GPU: not run", "the group, before the ensemble evaluation", seconds)


@case(9, "NCCL's communicator aborted with all-reduces queued")
def nccl_aborted(_place, _reference):
    raise NotRun("needs a GPU")


@case(10, "a rank of group 1 made half as fast from step 1 on")
def rank_is_slow(workspace, reference):
    start = workspace.run(4, ["bagging.M=2"], inject="slow@1:1:1")
    require_exit_code(start, 0)
    stragglers = workspace.result()["time_breakdown"]["stragglers"]
    found = [s for s in stragglers if (s["group"], s["group_rank"]) == (1, 1)]
    require(found, f"stragglers {stragglers}")
    require(workspace.digests() == {g: d for g, d in reference().items() if g < 2}, "a digest differs")
    return Row("the table of ranks marks it as a straggler, "
               f"{found[0]['ratio']:.1f} times the median; the result is kept, code 0", "time")


@case(11, "SIGUSR1 to `mpirun` in a step, then `resume`")
def signalled_to_stop(workspace, _reference):
    long = ["bagging.M=1", "workload.epochs=120"]
    require_exit_code(workspace.run(2, long, output="whole"), 0)
    start = workspace.run(2, long)
    progress = workspace.folder / "result/groups/0/progress.json"
    start.wait_for(lambda: progress.exists() and re.search(r'"step": [1-9]', progress.read_text()),
                   "the first step")
    signal_sent = time.monotonic()
    start.process.send_signal(signal.SIGUSR1)
    require_exit_code(start, 8)
    seconds = time.monotonic() - signal_sent
    step = int(re.search(r"^STOPPED step=(\d+)", start.output, re.M)[1])
    require_exit_code(workspace.mpirun(2, ["resume", str(workspace.folder / "result")]), 0)
    require(workspace.digests() == workspace.digests("whole"), "the digest differs")
    require(workspace.result()["quality"] == workspace.result("whole")["quality"], "the quality differs")
    return Row(f"code 8 after step {step} of 960 on both ranks; `resume` ends with the digest and the "
               "quality of a run that was not stopped", "nothing", seconds)


@case(12, "a writer of checkpoints killed (SIGKILL) at 200 random moments")
def checkpoint_kills(_place, _reference):
    _, output = gtest("training_test", "CheckpointKills.*", {"HPCAI500_KILLS": "200"})
    kills = re.search(r"^.*kills: *(.*)$", output, re.M)
    require(kills, "the test reports no kills")
    return Row(f"{kills[0].strip()} (`CheckpointKills.*` of `training_test`)",
               "at most the checkpoint being written")


@case(13, "two groups instead of four, and two threads per rank instead of one")
def other_layout(workspace, reference):
    require_exit_code(workspace.run(4, ["bagging.M=2", "device.threads=2"]), 0)
    require(workspace.digests() == {g: d for g, d in reference().items() if g < 2}, "a digest differs")
    cases, _ = gtest("end_to_end_test", "DeterministicRun.*:CompleteRun.IsTheSameAgain*")
    return Row("the same digests, group by group; and for other numbers of loader threads, threads and groups: "
               f"`DeterministicRun.*`, `CompleteRun.IsTheSameAgain*` ({cases} cases). On a GPU: not run",
               "nothing")


def cases_of(program, pattern):
    cases, _ = gtest(program, pattern)
    return f"`{program} --gtest_filter='{pattern}'`, {cases} cases"


@case(14, "checkpoints cut, changed in 1,000 ways, of other models and layouts, with lengths of 2^63")
def damaged_checkpoints(_place, _reference):
    by = cases_of("training_test", "CheckpointFiles.*:ResumedTraining.Rejects*")
    return Row(f"each is rejected by file and tensor name, or read; the previous checkpoint is used ({by})",
               "at most the damaged checkpoint")


@case(15, "configurations with duplicate and unknown keys, alias bombs, tabs, `.nan`, `010`, second "
          "documents, other bytes; mutated ones; M x P_degree unequal to the number of ranks")
def configurations(_place, _reference):
    by = cases_of("config_test", "Document.*:Reader.*:Consistency.*")
    launched = cases_of("end_to_end_test", "RefusedStart.*Key*:RefusedStart.NamesTheRanks*")
    return Row(f"each is rejected with code 2 or 3 and one message with the place ({by}; {launched})",
               "nothing: before any training")


@case(16, "pictures, HDF5 files and annotations that are cut, changed, huge, of other formats, empty, "
          "pipes, or missing")
def data(_place, _reference):
    by = cases_of("data_test", "*Jpeg*:ClimateFiles.*:Sources.*:Survey.*:DamagedStage.*")
    launched = cases_of("end_to_end_test", "BadSample.*")
    return Row(f"`fail` ends with code 4 and the path, `skip` and `count` count them ({by}; "
               f"{launched})", "the group with these data")


@case(17, "one rank under SLURM_NTASKS=4; 3 ranks instead of 8; shared GPUs and different NCCL versions, simulated")
def launches(workspace, _reference):
    words = ["run", "--config", "tiny.yaml", "--output", str(workspace.folder / "result")]
    begin = time.monotonic()
    code, output = workspace.call(*words, environment={"SLURM_NTASKS": "4"})
    require(code == 3 and "mpirun -np 4 hpcai500 run" in output, f"code {code}: {output}")
    seconds = time.monotonic() - begin
    start = workspace.run(3)
    require_exit_code(start, 3)
    require("needs 8 ranks" in start.output, start.output)
    require(not (workspace.folder / "result").exists(), "a result folder was created")
    by = cases_of("comm_test", "RankDevice.*:Launch.*")
    return Row(f"code 3 with the requirement and, for the first, the right command line; nothing is "
               f"written ({by})", "nothing", seconds)
