#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/reference/metrics_detection.json.

"precision": average precision of detections by pycocotools at IoU 0.5 and 0.1, with equal scores
and equal overlaps, crowds, empty images, empty categories and more than 100 detections an image;
the area under the curve and the 11-point mean, in fractions, from pycocotools' matches.
"fusion": weighted boxes fusion by ensemble_boxes, its README's example first.

usage: detection_cases.py [DIRECTORY]     (default: tests/data/reference of this repository)
Needs pycocotools, ensemble-boxes and NumPy; the committed file says which versions wrote it.
"""
import contextlib
import fractions
import importlib.metadata
import io
import json
import pathlib
import random
import sys

import ensemble_boxes
import numpy
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

Fraction = fractions.Fraction
THRESHOLDS = [0.5, 0.1]


class Kind:
    """How a random test set is drawn; coordinates are multiples of `grid`, scores of `step`."""

    def __init__(self, images, categories, boxes, detections, grid=1.0, step=0.05, crowd=0.0,
                 size=64):
        self.images, self.categories, self.boxes = images, categories, boxes
        self.detections, self.grid, self.step = detections, grid, step
        self.crowd, self.size = crowd, size


KINDS = [
    Kind(6, 3, 4, 8, grid=4),                        # equal scores and overlaps
    Kind(12, 4, 3, 6, grid=0.1, step=0.01),          # decimals
    Kind(9, 3, 5, 10, grid=2, crowd=0.3),
    Kind(30, 2, 0.6, 2, grid=4, step=0.25),          # most images empty
    Kind(5, 6, 0.4, 3, grid=4),                      # categories without boxes
    Kind(1, 1, 60, 140, grid=8, step=0.02),          # more than 100 detections
    Kind(7, 2, 4, 0),                                # nothing found
    Kind(40, 4, 3, 5, grid=0.01, step=1e-7, size=96),
]


def number(value):
    """At most seven decimals, so that files stay small and read back exactly."""
    return round(value, 7)


def count(generator, mean):
    """A whole number of this mean, often 0 when it is small."""
    return sum(generator.random() < mean / (2 * max(1, round(mean)))
               for _ in range(2 * max(1, round(mean))))


def random_box(generator, kind):
    steps = int(kind.size / kind.grid)
    x, y = generator.randrange(steps // 2), generator.randrange(steps // 2)
    w, h = (generator.randint(1, steps // 2) for _ in range(2))
    return [number(v * kind.grid) for v in (x, y, w, h)]


def moved(generator, box, kind):
    """Near `box`, sometimes equal."""
    near = [v + generator.choice([-2, -1, 0, 0, 0, 1, 2]) * kind.grid for v in box]
    return [number(near[0]), number(near[1]), *(number(max(kind.grid, v)) for v in near[2:])]


def draw(seed, kind):
    """(boxes, detections): rows of image, category, x, y, width, height and crowd or score."""
    generator = random.Random(seed)
    boxes, detections = [], []
    for image in range(kind.images):
        here = []
        for _ in range(count(generator, kind.boxes)):
            category = generator.randint(1, kind.categories)
            crowd = int(generator.random() < kind.crowd)
            here.append([image, category, *random_box(generator, kind), crowd])
        boxes += here
        for _ in range(count(generator, kind.detections)):
            if here and generator.random() < 0.7:
                found = generator.choice(here)
                category, box = found[1], moved(generator, found[2:6], kind)
            else:
                category = generator.randint(1, kind.categories)
                box = random_box(generator, kind)
            score = number(generator.randint(1, int(1 / kind.step)) * kind.step)
            detections.append([image, category, *box, score])
    return boxes, detections


def evaluated(kind, boxes, detections, threshold):
    """COCOeval after accumulation, one threshold, area 'all', 100 detections."""
    truth = COCO()
    truth.dataset = {
        "images": [{"id": i} for i in range(kind.images)],
        "categories": [{"id": c + 1, "name": str(c + 1)} for c in range(kind.categories)],
        "annotations": [{"id": n + 1, "image_id": b[0], "category_id": b[1], "bbox": b[2:6],
                         "area": b[4] * b[5], "iscrowd": b[6]} for n, b in enumerate(boxes)]}
    truth.createIndex()
    found = [{"image_id": d[0], "category_id": d[1], "bbox": d[2:6], "score": d[6]}
             for d in detections]
    results = truth.loadRes(found) if found else COCO()
    if not found:
        results.dataset = {**truth.dataset, "annotations": []}
        results.createIndex()
    evaluation = COCOeval(truth, results, "bbox")
    evaluation.params.iouThrs = numpy.array([threshold])
    evaluation.params.areaRng = [[0, 1e10]]
    evaluation.params.areaRngLbl = ["all"]
    evaluation.params.maxDets = [100]
    evaluation.evaluate()
    evaluation.accumulate()
    return evaluation


def ranked_hits(evaluation, category, images):
    """(1 or 0 of each detection that counts, best first; boxes to find)."""
    rows = [e for e in evaluation.evalImgs[category * images:(category + 1) * images] if e]
    scores = numpy.array([s for e in rows for s in e["dtScores"]])
    hits = [int(m > 0) for e in rows for m in e["dtMatches"][0]] if len(scores) else []
    ignored = [i for e in rows for i in e["dtIgnore"][0]] if len(scores) else []
    order = numpy.argsort(-scores, kind="mergesort")
    boxes = sum(int((e["gtIgnore"] == 0).sum()) for e in rows)
    return [hits[i] for i in order if not ignored[i]], boxes


def exact_means(hits, boxes):
    """Area under the raised curve and the mean of precision at 11 recalls, in fractions."""
    points = []
    for n in range(len(hits)):
        right = sum(hits[:n + 1])
        points.append((Fraction(right, boxes), Fraction(right, n + 1)))

    def best(recall):
        return max((p for r, p in points if r >= recall), default=Fraction(0))

    before = [Fraction(0)] + [r for r, _ in points]
    area = sum(((r - b) * best(r) for b, (r, _) in zip(before, points)), Fraction(0))
    return float(area), float(sum(best(Fraction(t, 10)) for t in range(11)) / 11)


def quality(kind, boxes, detections, threshold):
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation = evaluated(kind, boxes, detections, threshold)
    precision = evaluation.eval["precision"][0, :, :, 0, 0]
    categories = []
    for category in range(kind.categories):
        hits, positives = ranked_hits(evaluation, category, kind.images)
        row = {"boxes": positives, "detections": len(hits), "hits": sum(hits)}
        if positives:
            area, eleven = exact_means(hits, positives)
            row |= {"coco": float(precision[:, category].mean()), "voc_area": area,
                    "voc_2007": eleven}
        categories.append(row)
    known = precision[precision > -1]
    return {"threshold": threshold, "categories": categories,
            "mean": float(known.mean()) if known.size else None}


def precision_case(seed, kind):
    boxes, detections = draw(seed, kind)
    return {"images": kind.images, "categories": kind.categories, "boxes": boxes,
            "detections": detections,
            "quality": [quality(kind, boxes, detections, t) for t in THRESHOLDS]}


README = {
    "boxes": [[[0.00, 0.51, 0.81, 0.91], [0.10, 0.31, 0.71, 0.61], [0.01, 0.32, 0.83, 0.93],
               [0.02, 0.53, 0.11, 0.94], [0.03, 0.24, 0.12, 0.35]],
              [[0.04, 0.56, 0.84, 0.92], [0.12, 0.33, 0.72, 0.64], [0.38, 0.66, 0.79, 0.95],
               [0.08, 0.49, 0.21, 0.89]]],
    "scores": [[0.9, 0.8, 0.2, 0.4, 0.7], [0.5, 0.8, 0.7, 0.3]],
    "labels": [[1, 2, 1, 2, 2], [2, 2, 2, 1]], "weights": [2.0, 1.0], "iou": 0.5}


def random_members(seed, members):
    """Each sees most of the same objects, somewhat displaced; all scores differ."""
    generator = random.Random(seed)
    objects = [(generator.randint(1, 3), [generator.uniform(0, 0.6) for _ in range(2)],
                [generator.uniform(0.1, 0.4) for _ in range(2)]) for _ in range(12)]
    case = {"boxes": [], "scores": [], "labels": [], "weights": [1.0] * members, "iou": 0.55}
    for _ in range(members):
        seen = [o for o in objects for _ in range(generator.choice([0, 1, 1, 1, 2]))]
        boxes = []
        for _, (x, y), (w, h) in seen:
            x, y, w, h = (v * generator.uniform(0.93, 1.07) for v in (x, y, w, h))
            boxes.append([round(v, 4) for v in (x, y, x + w, y + h)])
        case["boxes"].append(boxes)
        case["scores"].append([round(generator.uniform(0.005, 1), 6) for _ in seen])
        case["labels"].append([label for label, _, _ in seen])
    return case


def fusion_case(case):
    boxes, scores, labels = ensemble_boxes.weighted_boxes_fusion(
        case["boxes"], case["scores"], case["labels"], weights=case["weights"],
        iou_thr=case["iou"], skip_box_thr=0.01)
    return {**case, "fused": [[int(label), float(score), *(float(v) for v in box)]
                              for label, score, box in zip(labels, scores, boxes)]}


def write(path, content):
    text = json.dumps(content, separators=(",", ":")).replace("},", "},\n")
    path.write_text(text.replace('],"', '],\n"') + "\n")


def main():
    default = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "reference"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    folder.mkdir(parents=True, exist_ok=True)
    versions = {name: importlib.metadata.version(name)
                for name in ("pycocotools", "ensemble-boxes", "numpy")}
    write(folder / "metrics_detection.json",
          {**versions, "precision": [precision_case(n, kind) for n, kind in enumerate(KINDS)],
           "fusion": [fusion_case(c) for c in
                      [README, random_members(1, 1), random_members(2, 2), random_members(3, 5),
                       random_members(4, 3)]]})


if __name__ == "__main__":
    main()
