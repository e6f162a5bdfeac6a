#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Convert the runs in a results folder into the JSON, table and SVG of a figure.

A run is runs/KEY=VALUE,KEY=VALUE.json, a result.json of the program. An epoch's time is the median
over all epochs except the first, which includes warm-up.
"""
import argparse
import csv
import datetime
import json
import os
import pathlib
import platform
import statistics

import chart

EPOCHS_NOTE = "median of the epochs after the first, bars: their slowest and fastest"
PRECISIONS = ["fp32", "bf16", "fp16", "int8"]  # of communication


class Run:
    """The result of one run, with numbers that several charts use."""

    def __init__(self, path):
        self.folder = path.parents[1]  # folder of the experiment, with utilisation.tsv
        self.case = dict(pair.split("=", 1) for pair in path.stem.split(","))
        self.result = json.loads(path.read_text())
        verdict = self.result["verdict"]
        if verdict["exit_code"] != 0:
            raise SystemExit(f"{path}: the run is {verdict['status']}; only successful runs are drawn")
        self.ranks = self.result["topology"]["ranks"]
        self.models = self.result["topology"]["groups"]
        self.degree = self.result["topology"]["degree"]

    def groups(self):
        return self.result["work"]["groups"]

    @staticmethod
    def epoch_seconds_of(group):
        return statistics.median(group["epoch_seconds"][1:])

    def spread(self):
        """Minimum and maximum time of the slowest group's epochs after the first, over the median."""
        times = [group["epoch_seconds"][1:] for group in self.groups()]
        median = max(map(self.epoch_seconds_of, self.groups()))
        return [max(map(min, times)) / median, max(map(max, times)) / median]

    def step_seconds(self):
        """Seconds of a step of the slowest group."""
        return max(self.epoch_seconds_of(group) * len(group["epoch_seconds"]) / group["iterations"]
                   for group in self.groups())

    def images_per_second(self):
        """The rate of all models at the speed of the slowest group, as in eq. 6 of the paper."""
        per_epoch = sum(group["samples_trained"] / len(group["epoch_seconds"])
                        for group in self.groups())
        return per_epoch / max(map(self.epoch_seconds_of, self.groups()))

    def flops(self):
        return self.images_per_second() * self.result["flops"]["training_per_sample"]

    def sent_bytes(self):
        """Bytes per step of the rank that sends the most, counted by the ranks; None without counts."""
        return self.result["communication"]["sent_bytes_per_step"]

    def interval(self):
        """The 95 % interval of the ensemble's quality."""
        return [self.result["quality"]["confidence_interval"][end] for end in ("low", "high")]


def runs_of(folder):
    runs = [Run(path) for path in (folder / "runs").glob("*.json")]
    return sorted(runs, key=lambda run: (run.case.get("series", ""), run.ranks, -run.models))


def by_series(points, y, factor=1.0):
    """A line for each series: `y` / factor against ranks, with the values of its slowest and fastest epoch."""
    lines = []
    for name in dict.fromkeys(point["series"] for point in points):
        own = [point for point in points if point["series"] == name]
        lines.append(chart.Series(
            name.replace("_", " "), [(point["ranks"], point[y] / factor) for point in own],
            ranges=[sorted(point[y] / factor / time for time in point["spread"]) for point in own]))
    return lines


def ranks_of(points):
    return sorted({point["ranks"] for point in points})


WORKLOADS = {"image_classification": "Image Classification",
             "extreme_weather": "Extreme Weather Analytics"}


def conditions(runs, parameters, *more):
    words = [WORKLOADS[parameters["workload"]]] if "workload" in parameters else []
    if parameters.get("share"):
        words.append(f"each rank {parameters['share']} of a core")
    if parameters.get("rate"):
        words.append(f"links of {parameters['rate']}")
    if parameters.get("samples"):
        words.append(f"{parameters['samples']} samples a rank")
    precisions = {run.result["workload"]["precision"] for run in runs}
    if len(precisions) == 1:
        words.append(f"computed in {precisions.pop()}")
    return ", ".join([*words, *more])


def fig5(runs, parameters):
    points = []
    for run in runs:
        scores, quality = run.result["scores"], run.result["quality"]
        points.append({"ranks": run.ranks, "M": run.models, "P_degree": run.degree,
                       "flops": scores["flops"], "vflops": scores["vflops"],
                       "penalty_coefficient": scores["penalty_coefficient"],
                       "quality": quality["ensemble"], "members_mean": quality["members_mean"],
                       "interval": run.interval()})
    prefix, factor = chart.scaled([point["vflops"] for point in points] +
                                  [point["flops"] for point in points])
    first = points[0]
    linear = [(ranks, first["flops"] / first["ranks"] * ranks / factor) for ranks in ranks_of(points)]
    notes = [f"P_degree {first['P_degree']}"]
    guessing = [str(run.ranks) for run, point in zip(runs, points)
                if point["interval"][0] <= 1 / run.result["workload"]["classes"]]
    if guessing:
        notes.append(f"VFLOPS of {', '.join(guessing)} ranks from a quality no better than guessing")
    return points, chart.Chart(
        "FLOPS and VFLOPS against ranks", conditions(runs, parameters, *notes),
        "ranks (M x P_degree)", f"{prefix}FLOP/s",
        [chart.Series("FLOPS", [(point["ranks"], point["flops"] / factor) for point in points]),
         chart.Series("VFLOPS", [(point["ranks"], point["vflops"] / factor) for point in points]),
         chart.Series("FLOPS, linear", linear, dashed=True, marked=False)],
        ranks_of(points))


def fig7(runs, parameters):
    points = [{"M": run.models, "P_degree": run.degree, "ranks": run.ranks,
               "images_per_second_of_a_model": run.images_per_second() / run.models,
               "training_seconds": run.result["time"]["training_seconds"],
               "quality": run.result["quality"]["ensemble"],
               "members_mean": run.result["quality"]["members_mean"],
               "interval": run.interval()}
              for run in sorted(runs, key=lambda run: -run.models)]
    x = "images_per_second_of_a_model"
    return points, chart.Chart(
        "Training speed against quality",
        conditions(runs, parameters, f"{points[0]['ranks']} ranks", "bars: 95 % of draws of test samples"),
        "training speed of each base model, images/s", "Top-1 accuracy",
        [chart.Series("ensemble", [(point[x], point["quality"]) for point in points],
                      [f"M {point['M']}, P {point['P_degree']}" for point in points],
                      ranges=[point["interval"] for point in points]),
         chart.Series("mean of members", [(point[x], point["members_mean"]) for point in points],
                      dashed=True)])


def fig8(runs, parameters):
    points = [{"series": run.case["series"], "ranks": run.ranks, "M": run.models,
               "flops": run.flops(), "step_seconds": run.step_seconds(),
               "sent_bytes_per_step": run.sent_bytes(), "spread": run.spread()} for run in runs]
    points.sort(key=lambda point: point["series"] != "original")
    original = {point["ranks"]: point["flops"] for point in points if point["series"] == "original"}
    for point in points:
        point["speed_up"] = point["flops"] / original[point["ranks"]]
    prefix, factor = chart.scaled([point["flops"] for point in points])
    return points, chart.Chart(
        "Precision and communication precision",
        conditions(runs, parameters, f"{parameters['degree']} ranks a model", EPOCHS_NOTE),
        "ranks (M x P_degree)", f"{prefix}FLOP/s",
        by_series(points, "flops", factor), ranks_of(points))


def fig9(runs, parameters):
    points = [{"series": run.case["series"], "ranks": run.ranks, "M": run.models,
               "flops": run.flops(), "step_seconds": run.step_seconds(), "spread": run.spread()}
              for run in runs]
    single_rank = {point["series"]: point["flops"] for point in points if point["ranks"] == 1}
    for point in points:
        point["efficiency"] = point["flops"] / (single_rank[point["series"]] * point["ranks"])
    return points, chart.Chart(
        "Scaling efficiency of bagging and of data parallelism",
        conditions(runs, parameters, EPOCHS_NOTE), "ranks", "FLOPS / (ranks x FLOPS of one rank)",
        by_series(points, "efficiency"), ranks_of(points), y_to=1.0)


def communication(runs, parameters):
    points = []
    for run in runs:
        traffic = run.result["communication"]
        points.append({"series": f"{run.case['series']}, {run.case['per_host']} a host",
                       "precision": run.case["precision"], "ranks": run.ranks,
                       "step_seconds": run.step_seconds(), "spread": run.spread(),
                       "sent_bytes": run.sent_bytes(),
                       "out_of_node_bytes": traffic["out_of_node_bytes_per_step"]})
    points.sort(key=lambda point: (point["ranks"], point["series"], -point["step_seconds"]))
    by_format = {(point["series"], point["precision"]): point["step_seconds"] for point in points}
    for point in points:
        fp32 = by_format.get((point["series"], "fp32"))
        point["speed_up_over_fp32"] = fp32 / point["step_seconds"] if fp32 else None
    names = list(dict.fromkeys(point["series"] for point in points))
    formats = [name for name in PRECISIONS if any(point["precision"] == name for point in points)]

    def position(point):  # puts points of one precision side by side
        offset = (names.index(point["series"]) + 0.5) / len(names) - 0.5
        return formats.index(point["precision"]) + 0.6 * offset, point["step_seconds"]

    series = [chart.Series(name, [position(point) for point in points if point["series"] == name],
                           joined=False,
                           ranges=[[point["step_seconds"] * ratio for ratio in point["spread"]]
                                   for point in points if point["series"] == name])
              for name in names]
    return points, chart.Chart("Time of a step by communication precision",
                               conditions(runs, parameters, f"{parameters['hosts']} hosts",
                                          EPOCHS_NOTE),
                               "communication.precision", "s a step", series,
                               list(range(len(formats))), formats)


def settings(runs, parameters):
    points = []
    for name in dict.fromkeys(run.case["series"] for run in runs):
        own = [run for run in runs if run.case["series"] == name]
        qualities = [run.result["quality"]["ensemble"] for run in own]
        points.append({"series": name, "runs": len(own),
                       "images_per_second": statistics.median(run.images_per_second() for run in own),
                       "sent_bytes_per_step": own[0].sent_bytes(),
                       "quality": statistics.mean(qualities), "least": min(qualities),
                       "most": max(qualities),
                       "final_loss": statistics.mean(run.groups()[0]["final_training_loss"]
                                                     for run in own)})
    default = next(point for point in points if point["series"] == "default")
    for point in points:
        point["speed"] = point["images_per_second"] / default["images_per_second"]
    points.sort(key=lambda point: point is not default)
    series = [chart.Series(point["series"], [(point["images_per_second"], point["quality"])],
                           joined=False, ranges=[(point["least"], point["most"])])
              for point in points]
    notes = [f"{parameters['ranks']} ranks", f"{parameters['epochs']} epochs"]
    if points[0]["runs"] > 1:
        notes.append(f"mean, least and most of {points[0]['runs']} seeds")
    return points, chart.Chart("Speed against quality of each setting",
                               conditions(runs, parameters, *notes), "images/s", "Top-1 accuracy",
                               series)


def fig6(runs, parameters):
    with open(runs[0].folder / "utilisation.tsv", encoding="utf-8") as file:
        points = [{key: float(value) for key, value in row.items()}
                  for row in csv.DictReader(file, delimiter="\t")]
    if not points:
        raise SystemExit("fig6: all ranks ran at the same time for less than one reading; set more --steps")
    fifth = len(points) // 5  # excluded at the start and at the end of the run
    middle = [point["mean"] for point in points[fifth:len(points) - fifth]]
    series = [chart.Series(name, [(point["seconds"], 100 * point[key]) for point in points],
                           marked=False, dashed=key != "mean")
              for name, key in (("mean of the ranks", "mean"), ("least used rank", "least"))]
    note = conditions(runs, parameters, f"{runs[0].ranks} ranks, P_degree {runs[0].degree}",
                      "waiting for other ranks counts as use",
                      f"median of the middle three fifths {100 * statistics.median(middle):.0f} %")
    return points, chart.Chart("Utilization of each rank's share of a core", note,
                               "time, s", "processor time used, % of the share", series, y_to=100)


def table(points):
    """The points as a table."""
    def cell(value):
        if isinstance(value, list):
            return " to ".join(cell(element) for element in value)
        if isinstance(value, float):
            return f"{value:.0f}" if value.is_integer() and value < 1e10 else f"{value:.4g}"
        return "-" if value is None else str(value)

    rows = [list(points[0])] + [[cell(value) for value in point.values()] for point in points]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(word.rjust(width) for word, width in zip(row, widths))
                     for row in rows) + "\n"


def machine():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")),
                 platform.machine())
    return {"processor": model, "processors": os.cpu_count(), "system": platform.platform()}


FIGURES = {figure.__name__: figure for figure in (fig5, fig6, fig7, fig8, fig9, communication,
                                                  settings)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("figure", choices=FIGURES)
    parser.add_argument("folder", type=pathlib.Path)
    arguments = parser.parse_args()
    folder, name = arguments.folder, arguments.figure
    parameters = dict(line.split("\t", 1) for line in
                      (folder / "parameters.tsv").read_text().splitlines())
    points, drawing = FIGURES[name](runs_of(folder), parameters)
    with open(folder / "runs.tsv", encoding="utf-8") as file:
        loads = {run: float(load) for run, load, _ in csv.reader(file, delimiter="\t")}
    document = {"figure": name, "made_utc": f"{datetime.datetime.now(datetime.timezone.utc):%FT%TZ}",
                "machine": machine(), "parameters": parameters, "load_before_run": loads,
                "points": points}
    (folder / f"{name}.json").write_text(json.dumps(document, indent=2) + "\n")
    rows = points if name != "fig6" else points[::max(1, len(points) // 20)]
    (folder / f"{name}.txt").write_text(table(rows))
    (folder / f"{name}.svg").write_text(chart.svg(drawing))
    print(table(rows), end="")
    print(f"{name}: {folder}/{name}.json, {name}.txt, {name}.svg")


if __name__ == "__main__":
    main()
