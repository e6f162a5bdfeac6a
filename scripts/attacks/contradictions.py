# SPDX-License-Identifier: Apache-2.0
"""Other programs and clocks, numbers that contradict others, and single edits: F12 to F16."""
import json
import shutil
import subprocess

from forgery import Forgery, sha256
from rows import CAUGHT, row
from workspace import NotRun, require

CLOCK = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec* now) {
    static int (*real)(clockid_t, struct timespec*);
    if (!real) real = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
    const int code = real(id, now);
    if (id == CLOCK_MONOTONIC) {
        const long long ns = (now->tv_sec * 1000000000LL + now->tv_nsec) / 10;
        now->tv_sec = ns / 1000000000LL;
        now->tv_nsec = ns % 1000000000LL;
    }
    return code;
}
"""


@row("F12", "a preloaded library slows the clock to a tenth", "recorded")
def slow_clock(workspace):
    if not shutil.which("gcc"):
        raise NotRun("needs gcc")
    (workspace.folder / "clock.c").write_text(CLOCK)
    library = workspace.folder / "clock.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, workspace.folder / "clock.c", "-ldl"], check=True)
    workspace.expect(0, *workspace.run_words("F12"), ranks=2, environment={"LD_PRELOAD": str(library)})
    record = Forgery(workspace.folder / "F12").read_json("result.json")
    require(str(library) in json.dumps(record["environment"]), "the environment does not name the library")
    return workspace.verify("F12")


@row("F13", "finished groups resumed with another program", "recorded")
def another_program(workspace):
    forged = workspace.forge("F13")
    other = workspace.folder / "hpcai500-other"
    shutil.copy(workspace.program, other)
    with other.open("ab") as file:
        file.write(b"\0")
    workspace.expect(0, "resume", "F13", ranks=2, program=other)
    record = forged.read_json("result.json")
    programs = [invocation["binary_sha256"] for invocation in record["invocations"]]
    require(programs == [sha256(workspace.program), sha256(other)], f"invocations of {programs}")
    require(record["environment"]["binary_sha256"] == programs[0], "the environment is not that of the training")
    return workspace.verify(forged.directory)


@row("F14", "training_seconds 0.001 in record.json, steps.csv unchanged", "refused")
def contradicted_time(workspace):
    forged = workspace.forge("F14")
    with forged.record(0) as record:
        record["record"]["training_seconds"] = 0.001
    workspace.expect(10, "score", "F14", text="training_seconds is 0.001")
    require("RESULT" not in workspace.output, "score prints a RESULT line")
    require(not (forged.directory / "result.json").exists(), "score writes a result")
    return ()


RECORD_EDITS = (("flops", "training_per_sample"), ("quality", "target"), ("scores", "vflops"),
                ("work", "samples_trained"), ("verdict", "rankable"), ("quality", "out_of_bag"))
FILE_EDITS = (("groups/0/log.txt", "epoch 1/2", "epoch 1/9"), ("launch.json", '"started_utc": "2', '"started_utc": "1'),
              ("launch.json", '"config_sha256": "', '"config_sha256": "0'),
              ("launch.json", '"samples_sha256": "', '"samples_sha256": "0'),
              ("launch.json", '"binary_sha256": "', '"binary_sha256": "0'),
              ("groups/0/steps.csv", "0,0,8,", "0,0,9,"), ("result.json", '"device": "1 thread', '"device": "9 threads'))


def single_edits(workspace):
    """One forged result after another, each with one edit and a new manifest, but the old summary."""
    for number, (section, key) in enumerate(RECORD_EDITS):
        forged = Forgery(workspace.copy(f"F15-{number}"))
        with forged.json("result.json") as record:
            value = record[section][key]
            record[section][key] = not value if isinstance(value, bool) else (value or 0) + 1
        yield forged, key
    for number, (name, old, new) in enumerate(FILE_EDITS, len(RECORD_EDITS)):
        forged = Forgery(workspace.copy(f"F15-{number}"))
        forged.replace(name, old, new)
        yield forged, new


@row("F15", "13 single edits, manifest made again, summary not", CAUGHT)
def edited_once(workspace):
    codes = set()
    for forged, what in single_edits(workspace):
        summary = (forged.directory / "summary.txt").read_text()
        forged.seal_again()
        (forged.directory / "summary.txt").write_text(summary)
        found = workspace.verify(forged.directory)
        require(found == (10, 10), f"{what}: exit codes {found}")
        codes.add(found)
    return codes.pop()


@row("F16", "run.level in config.yaml only, manifest and summary made again", CAUGHT)
def other_level(workspace):
    forged = Forgery(workspace.copy("F16"))
    forged.replace("config.yaml", "level: custom", "level: free")
    forged.seal_again()
    return workspace.verify(forged.directory)
