#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the runs that a script here left in a folder into that figure's JSON, table and SVG.

A run is runs/KEY=VALUE,KEY=VALUE.json, a result.json of the program. An epoch's time is the median
over the epochs after the first, which has the warming up in it.
"""
import argparse
import csv
import datetime
import json
import pathlib
import platform
import statistics

import chart

EPOCHS_NOTE = "median of the epochs after the first"


class Run:
    """One run's result and the figures that several charts use."""

    def __init__(self, path):
        self.case = dict(pair.split("=", 1) for pair in path.stem.split(","))
        self.result = json.loads(path.read_text())
        self.ranks = self.result["topology"]["ranks"]
        self.models = self.result["topology"]["groups"]
        self.degree = self.result["topology"]["degree"]

    def groups(self):
        return self.result["work"]["groups"]

    def epoch_seconds(self):
        """Of the slowest group."""
        return max(statistics.median(group["epoch_seconds"][1:] or group["epoch_seconds"])
                   for group in self.groups())

    def spread(self):
        """Largest over smallest time of the epochs after the first, of all groups."""
        times = [time for group in self.groups() for time in group["epoch_seconds"][1:]]
        return max(times) / min(times) if times else 1.0

    def steps_per_epoch(self):
        group = self.groups()[0]
        return group["iterations"] / len(group["epoch_seconds"])

    def step_seconds(self):
        return self.epoch_seconds() / self.steps_per_epoch()

    def images_per_second(self):
        """Of all models."""
        per_epoch = sum(group["samples_trained"] / len(group["epoch_seconds"])
                        for group in self.groups())
        return per_epoch / self.epoch_seconds()

    def flops(self):
        return self.images_per_second() * self.result["flops"]["training_per_sample"]

    def wire_bytes(self):
        """That a rank sends in a step, by formula; None of a program that does not say."""
        return self.result["communication"].get("sent_bytes_per_step")


def runs_of(folder):
    runs = [Run(path) for path in (folder / "runs").glob("*.json")]
    return sorted(runs, key=lambda run: (run.case.get("series", ""), run.ranks, -run.models))


def by_series(points, x, y, factor=1.0):
    names = list(dict.fromkeys(point["series"] for point in points))
    return [(name, [(point[x], point[y] / factor) for point in points if point["series"] == name])
            for name in names]


def ranks_of(points):
    return sorted({point["ranks"] for point in points})


WORKLOADS = {"image_classification": "Image Classification",
             "extreme_weather": "Extreme Weather Analytics"}


def conditions(parameters, *more):
    words = [WORKLOADS[parameters["workload"]]] if "workload" in parameters else []
    if parameters.get("share"):
        words.append(f"each rank {parameters['share']} of a core")
    if parameters.get("rate"):
        words.append(f"links of {parameters['rate']}")
    return ", ".join([*words, *more])


def fig5(runs, parameters):
    points = []
    for run in runs:
        scores, quality = run.result["scores"], run.result["quality"]
        points.append({"ranks": run.ranks, "M": run.models, "P_degree": run.degree,
                       "flops": scores["flops"], "vflops": scores["vflops"],
                       "penalty_coefficient": scores["penalty_coefficient"],
                       "quality": quality["ensemble"], "members_mean": quality["members_mean"]})
    prefix, factor = chart.scaled([point["vflops"] for point in points] +
                                  [point["flops"] for point in points])
    first = points[0]
    linear = [(ranks, first["flops"] / first["ranks"] * ranks / factor) for ranks in ranks_of(points)]
    return points, chart.Chart(
        "FLOPS and VFLOPS against ranks", conditions(parameters, f"P_degree {first['P_degree']}"),
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
               "interval": [run.result["quality"]["confidence_interval"][end]
                            for end in ("low", "high")]}
              for run in sorted(runs, key=lambda run: -run.models)]
    x = "images_per_second_of_a_model"
    return points, chart.Chart(
        "Training speed against quality", conditions(parameters, f"{points[0]['ranks']} ranks"),
        "training speed of each base model, images/s", "Top-1 accuracy",
        [chart.Series("ensemble", [(point[x], point["quality"]) for point in points],
                      [f"M {point['M']}, P {point['P_degree']}" for point in points]),
         chart.Series("mean of members", [(point[x], point["members_mean"]) for point in points],
                      dashed=True)])


def fig8(runs, parameters):
    points = [{"series": run.case["series"], "ranks": run.ranks, "M": run.models,
               "flops": run.flops(), "step_seconds": run.step_seconds(),
               "sent_bytes_per_step": run.wire_bytes(), "spread": run.spread()} for run in runs]
    original = {point["ranks"]: point["flops"] for point in points if point["series"] == "original"}
    for point in points:
        point["speed_up"] = point["flops"] / original[point["ranks"]]
    prefix, factor = chart.scaled([point["flops"] for point in points])
    return points, chart.Chart(
        "Precision and communication precision",
        conditions(parameters, f"{parameters['degree']} ranks a model", EPOCHS_NOTE),
        "ranks (M x P_degree)", f"{prefix}FLOP/s",
        [chart.Series(name.replace("_", " "), line)
         for name, line in by_series(points, "ranks", "flops", factor)], ranks_of(points))


def fig9(runs, parameters):
    points = [{"series": run.case["series"], "ranks": run.ranks, "M": run.models,
               "flops": run.flops(), "step_seconds": run.step_seconds(), "spread": run.spread()}
              for run in runs]
    alone = {point["series"]: point["flops"] for point in points if point["ranks"] == 1}
    for point in points:
        point["efficiency"] = point["flops"] / (alone[point["series"]] * point["ranks"])
    lines = [chart.Series(name.replace("_", " "), line)
             for name, line in by_series(points, "ranks", "efficiency")]
    return points, chart.Chart(
        "Scale efficiency of bagging and of data parallelism",
        conditions(parameters, EPOCHS_NOTE), "ranks", "FLOPS / (ranks x FLOPS of one rank)", lines,
        ranks_of(points), y_to=1.0)


def communication(runs, parameters):
    points = []
    for run in runs:
        traffic = run.result["communication"]
        points.append({"series": f"{run.case['series']}, {run.case['per_host']} a host",
                       "precision": run.case["precision"], "ranks": run.ranks,
                       "step_seconds": run.step_seconds(), "spread": run.spread(),
                       "sent_bytes": run.wire_bytes(),
                       "out_of_node_bytes": traffic.get("out_of_node_bytes_per_step")})
    points.sort(key=lambda point: (point["ranks"], point["series"], -point["step_seconds"]))
    by_format = {(point["series"], point["precision"]): point["step_seconds"] for point in points}
    for point in points:
        fp32 = by_format.get((point["series"], "fp32"))
        point["speed_up_over_fp32"] = fp32 / point["step_seconds"] if fp32 else None
    drawn = [point for point in points if point["out_of_node_bytes"] is not None]
    names = list(dict.fromkeys(point["series"] for point in drawn))
    series = [chart.Series(name, [(point["out_of_node_bytes"] / 1e6, point["step_seconds"])
                                  for point in drawn if point["series"] == name],
                           [point["precision"] for point in drawn if point["series"] == name],
                           joined=False) for name in names]
    return points, chart.Chart("Time of a step against bytes that leave a host",
                               conditions(parameters, f"{parameters['hosts']} hosts", EPOCHS_NOTE),
                               "MB a host sends to others in a step (formula)", "s a step", series)


def settings(runs, parameters):
    points = []
    for name in dict.fromkeys(run.case["series"] for run in runs):
        same = [run for run in runs if run.case["series"] == name]
        qualities = [run.result["quality"]["ensemble"] for run in same]
        points.append({"series": name, "runs": len(same),
                       "images_per_second": statistics.median(run.images_per_second() for run in same),
                       "sent_bytes_per_step": same[0].wire_bytes(),
                       "quality": statistics.mean(qualities), "least": min(qualities),
                       "most": max(qualities),
                       "final_loss": statistics.mean(run.groups()[0]["final_training_loss"]
                                                     for run in same)})
    default = next(point for point in points if point["series"] == "default")
    for point in points:
        point["speed"] = point["images_per_second"] / default["images_per_second"]
    points.sort(key=lambda point: point is not default)
    series = [chart.Series(point["series"], [(point["images_per_second"], point["quality"])],
                           joined=False) for point in points]
    return points, chart.Chart("Speed against quality of each setting",
                               conditions(parameters, f"{parameters['ranks']} ranks",
                                          f"{parameters['epochs']} epochs"),
                               "images/s", "Top-1 accuracy", series)


def fig6(runs, parameters, folder):
    with open(folder / "utilisation.tsv", encoding="utf-8") as file:
        points = [{key: float(value) for key, value in row.items()}
                  for row in csv.DictReader(file, delimiter="\t")]
    middle = [point["mean"] for point in points[len(points) // 5:-len(points) // 5 or None]]
    series = [chart.Series(name, [(point["seconds"], 100 * point[key]) for point in points],
                           marked=False, dashed=key != "mean")
              for name, key in (("mean of the ranks", "mean"), ("least used rank", "least"))]
    note = conditions(parameters, f"{runs[0].ranks} ranks, P_degree {runs[0].degree}",
                      f"median {100 * statistics.median(middle):.0f} %")
    return points, chart.Chart("Utilisation of each rank's share of a core", note,
                               "time, s", "processor time used, % of the share", series, y_to=100)


def table(points):
    """The points in columns."""
    def cell(value):
        if isinstance(value, list):
            return " to ".join(cell(one) for one in value)
        return f"{value:.4g}" if isinstance(value, float) else "-" if value is None else str(value)

    rows = [list(points[0])] + [[cell(value) for value in point.values()] for point in points]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(word.rjust(width) for word, width in zip(row, widths))
                     for row in rows) + "\n"


def machine():
    model = next((line.split(":", 1)[1].strip() for line in
                  pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        processors = sum(line.startswith("processor") for line in file)
    return {"processor": model, "processors": processors, "system": platform.platform()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("figure", choices=["fig5", "fig6", "fig7", "fig8", "fig9",
                                           "communication", "settings"])
    parser.add_argument("folder", type=pathlib.Path)
    arguments = parser.parse_args()
    folder, name = arguments.folder, arguments.figure
    parameters = dict(line.split("\t", 1) for line in
                      (folder / "parameters.tsv").read_text().splitlines())
    runs = runs_of(folder)
    points, drawing = (fig6(runs, parameters, folder) if name == "fig6" else
                       globals()[name](runs, parameters))
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
