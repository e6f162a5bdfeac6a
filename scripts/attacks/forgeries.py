# SPDX-License-Identifier: Apache-2.0
"""Forged results, F1 to F11. Numbers follow from each other, because `score` computes them from the edited files."""
import itertools
import json
import random
import shutil
import struct

from forgery import GROUPS, Forgery
from findings import Findings
from model import Model
from result_files import ResultFiles
from rows import CAUGHT, DATA, NO_CHECK, row
from weights import weights_digest
from workspace import require

PHASES = ("input_wait", "forward", "backward", "communication", "optimizer", "other", "overlapped_communication")
PER_SECOND = ("images_per_second", "flops")


def scale_times(value, factor, key=""):
    """Scales durations in a record, and speeds by the inverse."""
    if isinstance(value, dict):
        is_duration = key == "time_breakdown" or key in PHASES
        return {name: scale_times(inner, factor, "seconds" if is_duration and isinstance(inner, float) else name)
                for name, inner in value.items()}
    if isinstance(value, list):
        return [scale_times(inner, factor, key) for inner in value]
    if isinstance(value, float) and key.endswith("seconds"):
        return value * factor
    return value / factor if isinstance(value, float) and key in PER_SECOND else value


def scale_group(forged, group, factor):
    def scaled(column, text):
        return repr(float(text) * factor) if column.endswith("seconds") and text else text

    for table in ("steps.csv", "ranks.csv"):
        forged.edit_table(f"groups/{group}/{table}", scaled)
    with forged.record(group) as record:
        counters = record.pop("counters")
        record.update(scale_times(record, factor))
        seconds = record["record"]["training_seconds"]
        for counter in counters:
            begin = counter["readings"][0]["utc_seconds"] if counter["readings"] else 0
            for reading in counter["readings"]:
                elapsed = (reading["utc_seconds"] - begin) * factor
                is_end = counter["name"] == "training:steps" and reading["utc_seconds"] > begin
                reading["utc_seconds"] = begin + (seconds if is_end else elapsed)
                if counter["name"].startswith("clock:"):
                    first = counter["readings"][0]["value"]
                    reading["value"] = first + (reading["value"] - first) * factor
        record["counters"] = counters


def scaled_times(workspace, name, factor):
    forged = workspace.forge(name)
    for group in GROUPS:
        scale_group(forged, group, factor)
    return workspace.judge(forged)


@row("genuine", "none; also `verify --data --replay 3` accepts it", "result verifies")
def genuine(workspace):
    code = workspace.verify_with_data("genuine", replay=3)
    require(code == 0, f"verify --data ends with {code}: {workspace.output[-300:]}")
    return workspace.verify("genuine")


@row("F1", "all times x 0.5", NO_CHECK)
def times_halved(workspace):
    return scaled_times(workspace, "F1", 0.5)


@row("F1c", "all times x 1/1024: above the measured ceiling", CAUGHT)
def times_impossible(workspace):
    return scaled_times(workspace, "F1c", 1 / 1024)


def confident(label, classes):
    return [0.97 if index == label else 0.03 / (classes - 1) for index in range(classes)]


def with_right_predictions(forged, labels, share):
    """Makes the predictions of each group right for a share of the samples."""
    for group in GROUPS:
        rows = forged.predictions(group)
        for sample in range(int(share * len(rows))):
            rows[sample] = confident(labels[sample], len(rows[sample]))
        forged.set_predictions(group, rows, labels)


@row("F2", "predictions := labels for 80 % of the test samples", DATA)
def invented_predictions(workspace):
    forged = workspace.forge("F2")
    with_right_predictions(forged, forged.labels(workspace.folder / "genuine/evaluation"), 0.8)
    return *workspace.judge(forged), workspace.verify_with_data(forged.directory)


def votes_of(forged):
    """The ensemble's answers by soft vote."""
    means = [[sum(values) for values in zip(*rows)] for rows in zip(*map(forged.predictions, GROUPS))]
    return [mean.index(max(mean)) for mean in means]


def reorder(forged, order, labels):
    """Keeps the test samples `order`, which then have these labels."""
    for group in GROUPS:
        rows = forged.predictions(group)
        forged.set_predictions(group, [rows[sample] for sample in order], labels)


def names_of(workspace):
    return (workspace.folder / "genuine/evaluation/samples.txt").read_text().splitlines()


@row("F3", "labels of 50 wrong samples := the ensemble's answers; class folders unchanged", CAUGHT)
def changed_labels(workspace):
    folder = workspace.with_other_tests("F3")
    forged = workspace.forge("forged", folder=folder)
    names, labels, votes = names_of(workspace), forged.labels(workspace.folder / "genuine/evaluation"), votes_of(forged)
    wrong = [sample for sample, label in enumerate(labels) if votes[sample] != label][:50]
    labels = [votes[sample] if sample in wrong else label for sample, label in enumerate(labels)]
    order = sorted(range(len(names)), key=lambda sample: (labels[sample], names[sample]))
    head = {"schema": "hpcai500-index-1", "root": str(workspace.folder / "data/val"),
            "classes": sorted({name.split("/")[0] for name in names}), "samples": len(names)}
    rows = [{"path": names[sample], "label": labels[sample]} for sample in order]
    (folder / "data/val").write_text("".join(json.dumps(value) + "\n" for value in [head, *rows]))
    reorder(forged, order, [labels[sample] for sample in order])
    with forged.json("launch.json") as launch:
        launch["samples_sha256"] = workspace.samples_digest(folder)
    return workspace.judge(forged)


@row("F4", "groups/1 := copy of groups/0", CAUGHT)
def copied_group(workspace):
    forged = workspace.forge("F4")
    shutil.rmtree(forged.directory / "groups/1")
    shutil.copytree(forged.directory / "groups/0", forged.directory / "groups/1")
    with forged.record(1) as record:
        record["record"]["group"] = 1
    forged.edit_table("groups/1/ranks.csv", lambda column, text: "1" if column == "world_rank" else text)
    return workspace.judge(forged)


@row("F5", "50 wrong test samples removed from all files", DATA)
def removed_samples(workspace):
    folder = workspace.with_other_tests("F5")
    forged = workspace.forge("forged", folder=folder)
    names, labels, votes = names_of(workspace), forged.labels(workspace.folder / "genuine/evaluation"), votes_of(forged)
    wrong = [sample for sample, label in enumerate(labels) if votes[sample] != label][:50]
    kept = [sample for sample in range(len(names)) if sample not in wrong]
    for sample in kept:
        target = folder / "data/val" / names[sample]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(workspace.folder / "data/val" / names[sample], target)
    reorder(forged, kept, [labels[sample] for sample in kept])
    with forged.json("launch.json") as launch:
        launch["samples_sha256"] = workspace.samples_digest(folder)
    return *workspace.judge(forged), workspace.verify_with_data(forged.directory)


@row("F6", "predictions of one member x 1000 - 3: no probabilities", CAUGHT)
def not_probabilities(workspace):
    forged = workspace.forge("F6")
    rows = [[1000 * value - 3 for value in values] for values in forged.predictions(1)]
    forged.set_predictions(1, rows, forged.labels(workspace.folder / "genuine/evaluation"))
    return workspace.judge(forged)


@row("F7", "weights of the groups swapped", DATA)
def swapped_weights(workspace):
    forged = workspace.forge("F7")
    paths = [forged.directory / f"groups/{group}/weights.safetensors" for group in GROUPS]
    contents = [path.read_bytes() for path in paths]
    digests = [forged.read_json(f"groups/{group}/record.json")["training_digest"] for group in GROUPS]
    for group in GROUPS:
        paths[group].write_bytes(contents[1 - group])
        with forged.record(group) as record:
            record["training_digest"] = digests[1 - group]
    return *workspace.judge(forged), workspace.verify_with_data(forged.directory)


def steps_counter(workspace, record):
    """The counter that only a run without interruption has."""
    counter = next(counter for counter in Forgery(workspace.folder / "genuine").read_json("groups/0/record.json")
                   ["counters"] if counter["name"] == "training:steps")
    first, last = counter["readings"]
    last.update(utc_seconds=first["utc_seconds"] + record["training_seconds"], value=float(record["iterations"]))
    return counter


@row("F8", "`continuations` of a resumed run erased", NO_CHECK)
def erased_continuations(workspace):
    if not (workspace.folder / "resumed").exists():
        workspace.expect(8, *workspace.run_words("resumed", "workload.epochs=150", "run.time_limit_seconds=2"),
                         ranks=2)
        workspace.expect(0, "resume", "resumed", "--set", "run.time_limit_seconds=0", ranks=2)
    forged = workspace.forge("F8", "resumed")
    for group in GROUPS:
        with forged.record(group) as record:
            require(record["record"]["continuations"], "the run was not resumed")
            record["record"]["continuations"] = []
            record["counters"] = [steps_counter(workspace, record["record"])]
    with forged.json("launch.json") as launch:
        del launch["invocations"][1:]
    return workspace.judge(forged)


@row("F9", "other host, device and program", NO_CHECK)
def other_machine(workspace):
    forged = workspace.forge("F9")
    host = forged.read_json("launch.json")["topology"]["map"][0]["host"]
    for name in ["launch.json"] + [f"groups/{group}/record.json" for group in GROUPS]:
        path = forged.directory / name
        path.write_text(path.read_text().replace(f'"{host}"', '"superpod-0001"'))
    with forged.json("launch.json") as launch:
        for place in launch["topology"]["map"]:
            place["device"] = "1 thread of EPYC 9999"
        launch["environment"]["device_of_rank_0"] = "1 thread of EPYC 9999"
        launch["environment"]["binary_sha256"] = launch["invocations"][0]["binary_sha256"] = "0" * 64
    for group in GROUPS:
        forged.edit_table(f"groups/{group}/ranks.csv",
                          lambda column, text: "superpod-0001" if column == "host" else text)
    return workspace.judge(forged)


@row("F10", "launch.json := \"not json at all\", manifest and summary made again", CAUGHT)
def no_launch(workspace):
    forged = Forgery(workspace.copy("F10"))
    (forged.directory / "launch.json").write_text("not json at all\n")
    forged.seal_again()
    return workspace.verify(forged.directory)


def invent_weights(forged, group, config):
    """Negates the tensors named *.weight, and stores the digest of all parameters."""
    name = f"groups/{group}/weights.safetensors"
    data = bytearray((forged.directory / name).read_bytes())
    start = 8 + struct.unpack("<Q", data[:8])[0]
    for tensor, entry in json.loads(data[8:start]).items():
        begin, end = (start + offset for offset in entry["data_offsets"]) if tensor != "__metadata__" else (0, 0)
        if tensor.endswith(".weight"):
            data[begin + 3:end:4] = bytes(byte ^ 0x80 for byte in data[begin + 3:end:4])
    (forged.directory / name).write_bytes(data)
    with forged.record(group) as record:
        files = ResultFiles(str(forged.directory), Findings(str(forged.directory)))
        record["training_digest"] = weights_digest(files, name, Model(config), record["record"]["iterations"])


@row("F11", "weights and predictions of all members invented, quality 0.95", DATA)
def nothing_trained(workspace):
    from configuration import read_yaml, text_of  # pylint: disable=import-outside-toplevel
    forged = workspace.forge("F11")
    config = {key: text_of(value) for key, value in
              read_yaml((forged.directory / "config.yaml").read_text()).items()}
    for group in GROUPS:
        invent_weights(forged, group, config)
    with_right_predictions(forged, forged.labels(workspace.folder / "genuine/evaluation"), 0.95)
    return *workspace.judge(forged), workspace.verify_with_data(forged.directory)


def invent_losses(forged, first_line):
    """Invents the losses of steps.csv from a line on."""
    draw = random.Random(1)
    for group in GROUPS:
        lines = itertools.count()
        forged.edit_table(f"groups/{group}/steps.csv", lambda column, text, lines=lines: repr(draw.uniform(0.1, 0.9))
                          if column == "loss" and next(lines) >= first_line else text)
        last = (forged.directory / f"groups/{group}/steps.csv").read_text().splitlines()[-1].split(",")[5]
        with forged.record(group) as record:
            record["record"]["final_training_loss"] = float(last)


@row("F11b", "losses of all steps invented", DATA)
def invented_losses(workspace):
    forged = workspace.forge("F11b")
    invent_losses(forged, 0)
    return *workspace.judge(forged), workspace.verify_with_data(forged.directory, replay=3)


@row("F11c", "losses invented from the second epoch on, at whose beginning a checkpoint is kept", DATA)
def invented_later_losses(workspace):
    forged = workspace.forge("F11c")
    invent_losses(forged, 96 // 8)
    return *workspace.judge(forged), workspace.verify_with_data(forged.directory, replay=3)
