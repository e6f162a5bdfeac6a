# SPDX-License-Identifier: Apache-2.0
"""Segmentation: mean intersection over union of cells of 8 x 8 pixels."""
import functools
import math
import operator

from arithmetic import fraction
from configuration import image_extent
from probabilities import ProbabilityTask, predicted_class

CELL_PIXELS = 8


class Segmentation(ProbabilityTask):
    metric = "mean_iou"
    ensemble_keys = ("ensemble", "ensemble_majority", "ensemble_pixel_accuracy", "segments")
    row_name = "cell"

    def __init__(self, run):
        cells = math.prod(-(-side // CELL_PIXELS) for side in image_extent(run.config))
        super().__init__(run, cells, int(run.config["workload.classes"]) + 1)
        name = "evaluation/classes.txt"
        *self.names, rest = run.files.text(name).split("\n")
        if rest:
            self.findings.add(name, "the last line has no newline")
            self.names.append(rest)
        self.findings.must_be(name, "the number of lines", len(self.names), self.classes)

    def count_cells(self, values):
        """Each class's [cells, predicted, hits]."""
        counts = [[0, 0, 0] for _ in range(self.classes)]
        for cell, label in self.scored_rows():
            counts[label][0] += 1
            choice = predicted_class(self.row(values, cell))
            if choice is not None:
                counts[choice][1] += 1
                counts[choice][2] += choice == label
        return counts

    @staticmethod
    def mean_iou(counts):
        """(intersection over union of each class, their mean over the classes that occur)."""
        ious = [fraction(hits, cells + predicted - hits) for cells, predicted, hits in counts]
        found = [iou for iou in ious if iou is not None]
        return ious, functools.reduce(operator.add, found) / len(found) if found else None

    def score_member(self, values):
        return {"quality": self.mean_iou(self.count_cells(values))[1]}

    def score_ensemble(self, values, majority):
        counts = self.count_cells(values)
        ious, mean = self.mean_iou(counts)
        rows = [{"name": name, "cells": cells, "predicted": predicted, "hits": hits, "iou": iou}
                for name, (cells, predicted, hits), iou in zip(self.names, counts, ious)]
        cells, hits = (sum(row[column] for row in counts) for column in (0, 2))
        return {"ensemble": mean, "ensemble_majority": self.mean_iou(self.count_cells(majority))[1],
                "ensemble_pixel_accuracy": fraction(hits, cells), "segments": rows}, None

    def members_interval(self, seed):
        return None
