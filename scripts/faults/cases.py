# SPDX-License-Identifier: Apache-2.0
"""The numbered tests: each injects a fault into a run, checks the outcome, and reports it."""
import dataclasses
import json
import os
import re
import shutil
import signal
import time

from harness import Failed, NotRun, gtest, must

INJECTED = r"^hpcai500: injected in step"
RECOVERY = {"recovery": True}
WATCHED = ["run.first_step_timeout_seconds=60", "run.step_timeout_seconds=30",
           "run.group_timeout_seconds=300"]
CASES = {}


@dataclasses.dataclass
class Row:
    """The observations of a test."""
    came_out: str
    lost: str
    seconds: float | None = None  # to detect the fault; None: there is nothing to detect


def case(number, injected):
    def add(function):
        CASES[number] = (injected, function)
        return function
    return add


def detected(start, pattern):
    """Seconds from the injection to the first line that reports it."""
    begin, end = start.seconds_of(INJECTED), start.seconds_of(pattern)
    must(begin is not None, "nothing was injected")
    must(end is not None, f"no line matches '{pattern}'")
    return max(0.0, end - begin)


def must_end(start, code):
    got = start.wait()
    must(got == code, f"exit code {got}, expected {code}")


def must_be_partial(place, reference, lost, words):
    """Require PARTIAL from status and record, all `words` in the reason of group `lost`, and for the
    other groups the digests of a run without a fault."""
    must(place.status() == 7, f"status gives {place.status()}, expected 7")
    verdict = place.result()["verdict"]
    must(verdict["status"] == "PARTIAL" and verdict["exit_code"] == 7, f"verdict {verdict}")
    reasons = "\n".join(verdict["reasons"])
    for word in words:
        must(re.search(word, reasons, re.M), f"no reason has '{word}': {reasons}")
    expected = {group: digest for group, digest in reference().items() if group != lost}
    digests = place.digests()
    must(set(digests) <= set(expected) and digests == {g: expected[g] for g in digests},
         "a digest is not that of a run without a fault")
    return len(digests)


def must_leave_no_process(place):
    left = place.left_over()
    must(not left, f"processes are left: {left}")


@case(1, "a rank of group 1 of 4 killed (SIGKILL) in step 5; `--enable-recovery`")
def rank_killed(place, reference):
    start = place.run(8, WATCHED, inject="kill@1:1:5", **RECOVERY)
    start.wait()
    finished = must_be_partial(place, reference, 1, [r"^group 1: .*rank 1 \(world rank 3 on .*has died"])
    must(finished == 3, f"{finished} groups finished")
    must_leave_no_process(place)
    reason = next(r for r in place.result()["verdict"]["reasons"] if r.startswith("group 1: "))
    return Row(f"PARTIAL, 3 of 4, `status` exits with 7; reason: \"{reason}\"",
               "group 1; the digests of the others are those of a run without a fault",
               detected(start, "group 1 failed: "))


@case(2, "both ranks of group 1 killed (SIGKILL) after step 5 once the other groups had finished; no "
         "recovery")
def rank_killed_without_recovery(place, reference):
    others = [place.folder / f"result/groups/{group}/record.json" for group in (0, 2, 3)]
    start = place.run(8, ["run.step_timeout_seconds=3600"],
                      inject="stop@1:1:5")
    start.wait_for(lambda: all(path.exists() for path in others), "the other groups finish")
    victims = [place.rank_process(2), place.rank_process(3)]
    must(None not in victims, "its ranks are not found")
    signal_sent = time.monotonic()
    for victim in victims:
        os.kill(victim, signal.SIGKILL)
    must_end(start, 137)
    seconds = time.monotonic() - signal_sent
    must_leave_no_process(place)
    must(not (place.folder / "result/result.json").exists(), "there is a result")
    must(sorted(place.digests()) == [0, 2, 3], f"{sorted(place.digests())} are stored")
    times = [path.stat().st_mtime_ns for path in others]
    scored = score_what_is_there(place)
    must_end(place.mpirun(8, ["resume", str(place.folder / "result")]), 0)
    must(place.digests() == reference(), "a digest is not that of a run without a fault")
    must([path.stat().st_mtime_ns for path in others] == times, "a finished group was done again")
    return Row(f"mpirun ends the job with 137; the files of the 3 finished groups are whole{scored}; "
               "`resume` trains group 1 alone and ends with the digests of a run without a fault",
               "the steps of group 1", seconds)


def score_what_is_there(place):
    if not re.search("^  score ", place.call("--help")[1], re.M):
        return ""
    copy = place.folder / "scored"
    shutil.copytree(place.folder / "result", copy)
    code, output = place.call("score", str(copy), "--allow-partial")
    must(code == 7, f"score exits with {code}: {output[-300:]}")
    must("RESULT PARTIAL" in output, "score prints no PARTIAL result")
    return "; `score --allow-partial` votes with them (PARTIAL, 3 of 4)"


@case(3, "rank 0 of the job killed (SIGKILL) in step 5; `--enable-recovery`")
def first_rank_killed(place, reference):
    start = place.run(8, WATCHED, inject="kill@0:0:5", **RECOVERY)
    start.wait()
    finished = must_be_partial(place, reference, 0, [r"^group 0: .*rank 0 \(world rank 0 on "])
    must(finished == 3, f"{finished} groups finished")
    must_leave_no_process(place)
    return Row("another leader collects the votes and writes the result: PARTIAL, 3 of 4, "
               "`status` exits with 7", "group 0; the digests of the others as above",
               detected(start, "group 0 failed: "))


def jobs_of_hung_leaders_end(place):
    """Jobs without recovery, in which an exit ends all ranks: a rank that hangs must not exit first."""
    soon = ["run.first_step_timeout_seconds=60", "run.step_timeout_seconds=10",
            "run.group_timeout_seconds=20"]
    start = place.run(4, [*soon, "bagging.M=2"], inject="hang@1:0:2", output="leader")
    must_end(start, 7)
    must(place.status("leader") == 7, "status of the run with a hung leader does not give 7")
    reasons = "\n".join(place.result("leader")["verdict"]["reasons"])
    must(re.search(r"^group 1: .*rank 0 \(world rank 2 on .*hangs", reasons, re.M),
         f"no reason has the leader that hangs: {reasons}")
    start = place.run(2, [*soon, "bagging.M=1"], inject="hang@0:0:2", output="only")
    must_end(start, 6)
    start = place.run(2, [*soon, "bagging.M=2", "bagging.P_degree=1"],
                      inject="hang@0:0:2,hang@1:0:2", output="all")
    must_end(start, 6)
    must_leave_no_process(place)
    return ("; without recovery a leader whose main thread hangs is named likewise (PARTIAL, 1 of 2), "
            "and the job ends with 6 where it led the only group, or where all groups' ranks hang")


@case(4, "a rank of group 1 of 4 stopped (SIGSTOP) in step 5; `--enable-recovery`")
def rank_stopped(place, reference):
    start = place.run(8, WATCHED, inject="stop@1:1:5", **RECOVERY)
    start.wait()
    finished = must_be_partial(place, reference, 1,
                               [r"^group 1: .*rank 1 \(world rank 3 on .*does not answer"])
    must(finished == 3, f"{finished} groups finished")
    flights = sorted((place.folder / "result/groups/1/flight").glob("rank-*.json"))
    must([flight.name for flight in flights] == ["rank-0.json"], f"flight records {flights}")
    must(json.loads(flights[0].read_text())["world_rank"] == 2, "it is from another rank")
    must_leave_no_process(place)
    return Row("PARTIAL, 3 of 4, `status` exits with 7; the flight record of its peer names what it "
               "waited for; mpirun returns and no process is left" + jobs_of_hung_leaders_end(place),
               "group 1; the digests of the others as above",
               detected(start, "group 1 failed: "))


@case(5, "every group throws in step 2")
def all_groups_fail(place, _reference):
    start = place.run(4, ["bagging.M=2"], inject="throw@0:0:2,throw@1:1:2")
    must_end(start, 5)
    must(place.status() == 5, "status does not give 5")
    result = place.result()
    reasons = result["verdict"]["reasons"]
    must(result["verdict"]["status"] == "INVALID", "it is not INVALID")
    must([r[:8] for r in reasons] == ["group 0:", "group 1:"], f"reasons {reasons}")
    must(result["scores"]["vflops"] is None, "there is a score")
    must_leave_no_process(place)
    return Row(f"INVALID with both reasons (\"{reasons[0]}\"), no score, code 5", "both groups",
               detected(start, r"group \d failed: "))


@case(6, "an exception in a loader thread of group 1 in step 3")
def loader_throws(place, reference):
    start = place.run(4, ["bagging.M=2"], inject="loader@1:1:3")
    must_end(start, 7)
    must("terminate called" not in start.output, "it ended by std::terminate")
    finished = must_be_partial(place, reference, 1, ["^group 1: injected into a loader thread"])
    must(finished == 1, f"{finished} groups finished")
    must_leave_no_process(place)
    return Row("PARTIAL, 1 of 2, with the exception's words, code 7; every thread is joined",
               "group 1; the digest of group 0 as above", None)


@case(7, "a NaN in one gradient of one rank of group 1, before its all-reduce in step 5, in fp32")
def gradient_is_no_number(place, reference):
    start = place.run(4, ["bagging.M=2"], inject="nan@1:0:5")
    must_end(start, 7)
    finished = must_be_partial(place, reference, 1, ["^group 1: training diverged: .*step (5|6)"])
    must(finished == 1, f"{finished} groups finished")
    reason = next(r for r in place.result()["verdict"]["reasons"] if r.startswith("group 1: "))
    seconds = detected(start, "group 1 failed: training diverged")
    step = re.search(r"step (\d)", reason)[1]
    named = "the step is named" if step == "5" else \
        "the step named is the one after it, the first whose loss it has reached"
    return Row(f"group 1 ends as diverged on both ranks, {named}; PARTIAL, code 7. With a loss scale: "
               "not run, as fp16 needs a GPU", "group 1", seconds)


@case(8, "one bit of a parameter flipped on one rank in step 3, with `run.audit_steps: 1`; of 2 "
         "ranks, and of 3")
def bit_flipped(place, _reference):
    start = place.run(4, ["bagging.M=2", "run.audit_steps=1"], inject="flip@1:1:3", output="two")
    must_end(start, 9)
    two = place.result("two")["work"]["groups"][1]["audit"]
    must(two["diverged_at_step"] == 4 and len(two["ranks"]) == 2, f"audit {two}")
    seconds = detected(start, "group 1 failed: replica audit after step 4")
    must_end(place.run(3, ["bagging.M=1", "bagging.P_degree=3", "training.batch_size=6",
                           "run.audit_steps=1"], inject="flip@0:1:3", output="three"), 9)
    three = place.result("three")["work"]["groups"][0]["audit"]
    must([rank["group_rank"] for rank in three["ranks"]] == [1], f"audit {three}")
    must(place.status("two") == 9 and place.status("three") == 9, "status does not give 9")
    return Row("INVALID by rule 8, code 9, at the end of that step: of 2 ranks both are named, of 3 "
               "the one. On a GPU: not run", "the group, before it could vote", seconds)


@case(9, "NCCL's communicator aborted with all-reduces queued")
def nccl_aborted(_place, _reference):
    raise NotRun("needs a GPU")


@case(10, "a rank of group 1 made half as fast from step 1 on")
def rank_is_slow(place, reference):
    start = place.run(4, ["bagging.M=2"], inject="slow@1:1:1")
    must_end(start, 0)
    stragglers = place.result()["time_breakdown"]["stragglers"]
    found = [s for s in stragglers if (s["group"], s["group_rank"]) == (1, 1)]
    must(found, f"stragglers {stragglers}")
    must(place.digests() == {g: d for g, d in reference().items() if g < 2}, "a digest differs")
    return Row("the table of ranks marks it as a straggler, "
               f"{found[0]['ratio']:.1f} times the median; the result stands, code 0", "time")


@case(11, "SIGUSR1 to `mpirun` in a step, then `resume`")
def told_to_stop(place, _reference):
    long = ["bagging.M=1", "workload.epochs=120"]
    must_end(place.run(2, long, output="whole"), 0)
    start = place.run(2, long)
    progress = place.folder / "result/groups/0/progress.json"
    start.wait_for(lambda: progress.exists() and re.search(r'"step": [1-9]', progress.read_text()),
                   "the first step")
    told = time.monotonic()
    start.process.send_signal(signal.SIGUSR1)
    must_end(start, 8)
    seconds = time.monotonic() - told
    step = int(re.search(r"^STOPPED step=(\d+)", start.output, re.M)[1])
    must_end(place.mpirun(2, ["resume", str(place.folder / "result")]), 0)
    must(place.digests() == place.digests("whole"), "the digest differs")
    must(place.result()["quality"] == place.result("whole")["quality"], "the quality differs")
    return Row(f"code 8 after step {step} of 960 on both ranks; `resume` ends with the digest and the "
               "quality of a run that was not stopped", "nothing", seconds)


@case(12, "a writer of checkpoints killed (SIGKILL) at 200 random moments")
def checkpoint_kills(_place, _reference):
    _, output = gtest("training_test", "CheckpointKills.*", {"HPCAI500_KILLS": "200"})
    kills = re.search(r"^.*kills: *(.*)$", output, re.M)
    must(kills, "it reports no kills")
    return Row(f"{kills[0].strip()} (`CheckpointKills.*` of `training_test`)",
               "at most the checkpoint under way")


@case(13, "two groups instead of four, and two threads per rank instead of one")
def other_layout(place, reference):
    must_end(place.run(4, ["bagging.M=2", "device.threads=2"]), 0)
    must(place.digests() == {g: d for g, d in reference().items() if g < 2}, "a digest differs")
    cases, _ = gtest("end_to_end_test", "DeterministicRun.*:CompleteRun.IsTheSameAgain*")
    return Row("the same digests, group by group; and of readers, threads and groups by "
               f"`DeterministicRun.*`, `CompleteRun.IsTheSameAgain*` ({cases} cases). On a GPU: not run",
               "nothing")


def cases_of(program, pattern):
    cases, _ = gtest(program, pattern)
    return f"`{program} --gtest_filter='{pattern}'`, {cases} cases"


@case(14, "checkpoints cut, changed in 1,000 ways, of other models and layouts, with lengths of 2^63")
def damaged_checkpoints(_place, _reference):
    by = cases_of("training_test", "CheckpointFiles.*:ResumedTraining.Refuses*")
    return Row(f"each refused by file and tensor, or read; the one before is used ({by})", "at most "
               "the damaged one")


@case(15, "configurations with double and unknown keys, alias bombs, tabs, `.nan`, `010`, second "
          "documents, other bytes; mutated ones; M x P_degree that are not the ranks")
def configurations(_place, _reference):
    by = cases_of("config_test", "Document.*:Reader.*:Consistency.*")
    launched = cases_of("end_to_end_test", "RefusedStart.*Key*:RefusedStart.NamesTheRanks*")
    return Row(f"each refused with code 2 or 3 and one message with its place ({by}; {launched})",
               "nothing: before any training")


@case(16, "pictures, HDF5 files and annotations that are cut, changed, huge, of other formats, empty, "
          "pipes, or not there")
def data(_place, _reference):
    by = cases_of("data_test", "*Jpeg*:ClimateFiles.*:Sources.*:Survey.*:DamagedStage.*")
    launched = cases_of("end_to_end_test", "BadSample.*")
    return Row(f"`fail` ends with code 4 and the path, `skip` and `count` count them ({by}; "
               f"{launched}). There is no reader of tar files", "the group whose data it was")


@case(17, "a rank alone under SLURM_NTASKS=4; 3 ranks for 8; shared GPUs and different NCCL versions, simulated")
def launches(place, _reference):
    words = ["run", "--config", "tiny.yaml", "--output", str(place.folder / "result")]
    begin = time.monotonic()
    code, output = place.call(*words, environment={"SLURM_NTASKS": "4"})
    must(code == 3 and "mpirun -np 4 hpcai500 run" in output, f"code {code}: {output}")
    seconds = time.monotonic() - begin
    start = place.run(3)
    must_end(start, 3)
    must("needs 8 ranks" in start.output, start.output)
    must(not (place.folder / "result").exists(), "a folder is left")
    by = cases_of("comm_test", "RankDevice.*:Launch.*")
    return Row(f"code 3 with what is needed, the right command line for the first; nothing is "
               f"written ({by})", "nothing", seconds)
