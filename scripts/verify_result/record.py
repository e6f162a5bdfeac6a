# SPDX-License-Identifier: Apache-2.0
"""result.json against the configuration, the model and the groups."""
import json

from arithmetic import known
from extremes import ExtremesCheck
from group import GroupCheck
from launch import check_launch, check_speed
from model import Model
from search import SearchCheck
from scores import ScoresCheck
from tasks import task_of
from verdict import submission_of

# (key of `workload` in result.json, key of the configuration with the same value)
ECHOED = (("kind", "workload.kind"), ("problem_class", "workload.problem_class"),
          ("model", "workload.model"), ("level", "run.level"), ("classes", "workload.classes"),
          ("image_size", "workload.image_size"), ("channels", "workload.channels"),
          ("epochs", "workload.epochs"), ("batch_size", "training.batch_size"),
          ("sampler", "bagging.sampler"), ("aggregation", "bagging.aggregation"),
          ("seed", "run.seed"), ("data_kind", "data.kind"))

# Rows of the summary with effective values, which may differ from the configuration.
EFFECTIVE = ("bagging.M", "bagging.P_degree", "training.precision", "training.batch_norm_samples",
             "parallel.data_degree", "parallel.pipeline_degree", "parallel.model_degree",
             "parallel.micro_batches")


def check_record(run):
    first = [row["started_utc"] for row in run.record["invocations"][:1]]
    run.must_be("time.started_utc", [run.record["time"]["started_utc"]], first, "invocations")
    run.attempt(check_launch, run)
    check_speed(run)
    check_workload(run)
    check_topology(run)
    model = Model(run.config)
    check_flops(run, model)
    rows = run.record["work"]["groups"]
    run.search = run.attempt(SearchCheck, run)
    if run.search is None:
        return
    task = None
    if any(not row["failure"] for row in rows):
        task = run.attempt(task_of(run.config), run)
    checked = []
    for number, row in enumerate(rows):
        group = run.attempt(GroupCheck(run, number, model, task).check)
        if group is None:
            return
        run.must_be(f"work.groups[{number}]", row, group.group,
                    f"groups/{number}/record.json and the files that it follows from")
        checked.append(group)
    digests = ["" if group.group["failure"] else group.digest for group in checked]
    run.must_be("training_digest", run.record["training_digest"], digests, "groups/<m>/weights.safetensors")
    scores = ScoresCheck(run, checked, task)
    scores.check()
    check_parameters(run, {"bad samples": scores.bad_samples, "decoder warnings": scores.decoder_warnings})
    check_ceiling(run)
    for group, quality in zip(scores.groups, scores.members):
        run.attempt(check_log, run, group, quality)
    ExtremesCheck(run, scores.groups, [group.stored for group in checked]).check()


def check_workload(run):
    record, config, workload = run.record, run.config, run.record["workload"]
    run.must_be("name", record["name"], config["run.name"], "config")
    run.must_be("submission", record["submission"], submission_of(config), "config")
    for key, source in ECHOED:
        run.must_be("workload." + key, str(workload[key]), config[source], "config")
    if config["data.kind"] in ("synthetic", "climate_synthetic"):
        for key, source in (("training_samples", "data.synthetic_samples"),
                            ("validation_samples", "data.synthetic_validation_samples")):
            run.must_be("workload." + key, workload[key], int(config[source]), "config")
    if config["training.precision"] != "auto":
        run.must_be("workload.precision", workload["precision"], config["training.precision"], "config")


def check_topology(run):
    topology = run.record["topology"]
    run.must_be("topology.ranks", topology["ranks"], len(topology["map"]), "topology.map")
    run.must_be("topology.ranks", topology["ranks"], topology["groups"] * topology["degree"], "eq. 5")
    run.must_be("topology.groups", topology["groups"], len(run.record["work"]["groups"]), "work.groups")


def check_flops(run, model):
    flops = run.record["flops"]
    run.must_be("flops.convention", flops["convention"], "table3", "docs/METRICS.md")
    for ledger in (flops, *(row for row in flops["ledgers"] if row["convention"] == "table3")):
        for key, wanted in (("forward_per_sample", model.flops), ("training_per_sample", 3 * model.flops)):
            run.must_be("flops." + key, ledger[key], wanted, "the model's layers")


def check_parameters(run, counts):
    """The rows of the summary's parameters, without their meanings. `counts` are those of the groups, by row."""
    record, config = run.record, run.config
    rows = [(row["key"], row["value"]) for row in record["parameters"]]
    facts = [row for row in rows if row[0] not in config]
    for key, value in rows:
        if key in config and key not in EFFECTIVE:
            run.must_be(f"parameters has {key}, which", value, config[key], "config")
    run.must_be("the number of different keys in parameters", len(dict(rows)), len(rows))
    topology, precision = record["topology"], record["workload"]["precision"]
    for key, wanted, source in (("bagging.M", str(topology["groups"]), "topology"),
                                ("bagging.P_degree", str(topology["degree"]), "topology"),
                                ("training.precision", precision, "workload.precision")):
        run.must_be(f"parameters has {key}, which", dict(rows).get(key), wanted, source)
    wanted = ["staged"] if record["staging"]["scope"] != "none" else []
    wanted += [key for key, count in counts.items() if count > 0]
    run.must_be("parameters, without settings,", [key for key, _ in facts], wanted,
                "staging and work.groups")
    for key, count in counts.items():
        if count > 0:
            run.must_be(f"parameters has {key}, which", dict(facts).get(key), str(count), "work.groups")


def check_ceiling(run):
    ceiling, source = run.record["roofline"], run.config["run.roofline"]
    wanted = "measured before training" if source == "measure" else source
    run.must_be("roofline.source", ceiling["source"], wanted, "config")
    run.must_be("roofline.precision", ceiling["precision"], run.record["workload"]["precision"],
                "workload.precision")
    parts = known(ceiling[key] for key in ("gemm_flops", "model_convolution_flops"))
    run.must_be("roofline.ceiling_flops", ceiling["ceiling_flops"], max(parts, default=None),
                "the larger of its parts")


def check_log(run, group, quality):
    """Checks seed, quality and end of a log for MLPerf; `hpcai500 verify` compares the whole log."""
    name, events = f"mllog/result_{group['group']}.txt", {}
    for line in run.files.text(name).split("\n")[:-1]:
        event = json.loads(line.removeprefix(":::MLLOG "))
        events.setdefault(event["key"], []).append(event)

    def compare(what, stored, wanted, shown):
        if stored != wanted:
            run.findings.add(name, f"does not follow from result.json: {what} is wrong; must be {shown}")

    seed = run.record["workload"]["seed"]
    compare("seed", [event["value"] for event in events.get("seed", [])], [seed], seed)
    qualities = [row["quality"] for row in group["quality_by_epoch"]
                 if row["epoch"] < run.record["workload"]["epochs"]]
    qualities += [quality] if not group["failure"] and quality is not None else []
    accuracies = [event["value"] for event in events.get("eval_accuracy", [])]
    compare("eval_accuracy", accuracies, qualities, qualities)
    status = "aborted" if group["failure"] else "success"
    found = [event["metadata"]["status"] for event in events.get("run_stop", [])]
    compare("the status of run_stop", found, [status], status)
