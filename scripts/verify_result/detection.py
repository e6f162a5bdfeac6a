# SPDX-License-Identifier: Apache-2.0
"""Detection: average precision of the members' and the fused boxes, and its intervals."""
import itertools

from arithmetic import total
from boxes import DETECTIONS_PER_IMAGE, average_precisions, fuse, matches, suppress
from findings import MalformedFile
from json_reader import read_json
from random_stream import CONFIDENCE, REPLICATES, Stream, draws_of_members
from result_files import sha256
from task import Task

MAX_FUSED_DETECTIONS = 10 ** 5
MAX_DRAWN_ROWS = 10 ** 7
CORNER_TOLERANCE = 1e-3  # pixels, of the fp32 corners
SAMPLES_ALONE, BOTH_STAGES = 0, 2  # streams of sample draws, without and with draws of members


class Detection(Task):
    files = ("detections.json", "ensemble.json", "annotations.json")
    metric = "coco_ap50"
    ensemble_keys = ("ensemble", "ensemble_voc_ap50", "ensemble_ap10", "categories")

    def __init__(self, run):
        super().__init__(run)
        name = self.labels_file
        truth = read_json(run.files, name, False)
        self.labels_sha256 = sha256(run.files.read(name))
        images = sorted(truth["images"], key=lambda image: image["id"])
        self.images = {image["id"]: index for index, image in enumerate(images)}
        self.sizes = [(image["width"], image["height"]) for image in images]
        self.categories = sorted(truth["categories"], key=lambda category: category["id"])
        self.findings.must_be(name, "the number of images", len(self.images),
                              run.record["workload"]["validation_samples"], "result.json")
        self.findings.must_be(name, "the number of categories", len(self.categories),
                              int(self.config["workload.classes"]), "config.yaml")
        self.boxes = {}  # (category, image) -> boxes
        for box in truth["annotations"]:
            if box.get("iscrowd"):
                raise MalformedFile(f"{name}: has a crowd (iscrowd), which this program does not support")
            key = box["category_id"], self.images[box["image_id"]]
            self.boxes.setdefault(key, []).append(box["bbox"])
        self.pooled = {}  # image -> (category, score, box, member) of all members

    def read(self, name):
        """((image, category, score, box) by image, SHA-256 of the file)."""
        rows = [(self.images[row["image_id"]], row["category_id"], row["score"], row["bbox"])
                for row in read_json(self.run.files, name, False)]
        return sorted(rows, key=lambda row: row[0]), sha256(self.run.files.read(name))

    def add_member(self, name):
        detections, digest = self.read(name)
        for image, category, score, box in detections:
            self.pooled.setdefault(image, []).append((category, score, box, self.members))
        self.members += 1
        self.check_detections(name, detections)
        # A diverged model can detect whole images with score 1, as another one does.
        self.is_specific = any(0 < score < 1 for _, _, score, _ in detections)
        return {"quality": self.quality(detections, 0.5)[1][0]}, digest

    def check_detections(self, name, detections):
        """Adds a finding for the first detection whose score is no probability or whose box leaves the image."""
        for index, (image, _, score, box) in enumerate(detections):
            is_inside = all(begin >= 0 and length >= 0 and begin + length <= side + CORNER_TOLERANCE
                            for begin, length, side in zip(box, box[2:], self.sizes[image]))
            if not (0 <= score <= 1 and is_inside):
                self.findings.add(name, f"detection {index} has score {score} and box {', '.join(map(str, box))}; "
                                         "must have a score from 0 to 1 and a box in its image")
                return

    def ranked(self, detections, threshold):
        """(image, score, hit), best first, and images of the true boxes, for each category."""
        by_image, found = {}, []
        for image, category, score, box in detections:
            by_image.setdefault((category, image), []).append((score, box))
        for category in self.categories:
            rows, boxes = [], []
            for image in range(len(self.images)):
                key = (category["id"], image)
                truth = self.boxes.get(key, [])
                boxes += [image] * len(truth)
                rows += [(image, *match) for match in matches(truth, by_image.get(key, []), threshold)]
            found.append((sorted(rows, key=lambda row: -row[1]), boxes))
        return found

    def quality(self, detections, threshold):
        """(boxes, detections, hits, (COCO, VOC) or None) of each category, and the two means."""
        rows = []
        for ranked, boxes in self.ranked(detections, threshold):
            ranks = [rank for rank, (_, _, hit) in enumerate(ranked, 1) if hit]
            precision = average_precisions(ranks, len(boxes)) if boxes else None
            rows.append((len(boxes), len(ranked), len(ranks), precision))
        precisions = [row[3] for row in rows if row[3]]
        means = [total(pair[kind] for pair in precisions) / len(precisions) if precisions else None
                 for kind in (0, 1)]
        return rows, means

    def combined(self, weights):
        """(image, category, score, box) that the members' detections give with these weights."""
        is_weighted = self.config["bagging.aggregation"] == "wbf"
        min_overlap = float(self.config["detector.fusion_overlap"]) or (0.55 if is_weighted else 0.5)
        min_score = float(self.config["detector.score_threshold"])
        fused = []
        for image in sorted(self.pooled):
            kept = [(category, (weights[member] if is_weighted else 1) * score, box)
                    for category, score, box, member in self.pooled[image]
                    if weights[member] and box[2] * box[3] > 0 and score > 0 and score >= min_score]
            kept.sort(key=lambda detection: (detection[0], -detection[1]))
            rows = []
            for category, group in itertools.groupby(kept, key=lambda detection: detection[0]):
                candidates = [detection[1:] for detection in group]
                boxes = (fuse(candidates, min_overlap, weights) if is_weighted
                         else suppress(candidates, min_overlap))
                rows += [(image, category, score, box) for score, box in boxes]
            fused += sorted(rows, key=lambda row: -row[2])[:DETECTIONS_PER_IMAGE]
        return fused

    def ensemble(self):
        name = "evaluation/ensemble.json"
        stored, digest = self.read(name)
        equal_weights = (1,) * self.members
        fused = self.combined(equal_weights)
        pairs = enumerate(itertools.zip_longest(map(comparable, fused), map(comparable, stored)))
        index = next((i for i, (wanted, found) in pairs if wanted != found), None)
        if index is not None:
            self.findings.add(name, f"detection {index} of {len(stored)} differs from the {len(fused)} "
                                     "fused detections of groups/*/detections.json")
        interval = self.interval_of([equal_weights] * REPLICATES, 1, SAMPLES_ALONE)
        return self.ensemble_numbers(fused), digest, interval

    def ensemble_numbers(self, fused):
        strict, (coco, voc) = self.quality(fused, 0.5)
        tolerant, (ap10, _) = self.quality(fused, 0.1)
        rows = [{"name": category["name"], "boxes": boxes, "detections": detections, "hits": hits,
                 "ap50": ap and ap[0], "voc_ap50": ap and ap[1], "ap10": other[3] and other[3][0]}
                for category, (boxes, detections, hits, ap), other
                in zip(self.categories, strict, tolerant)]
        return {"ensemble": coco, "ensemble_voc_ap50": voc, "ensemble_ap10": ap10, "categories": rows}

    def members_interval(self, seed):
        return self.interval_of(draws_of_members(seed, self.members), seed, BOTH_STAGES)

    def interval_of(self, draws, seed, stage):
        """The interval over draws of samples, each with the weights of the members in `draws`."""
        detections = sum(map(len, self.pooled.values()))
        if (len(set(draws)) * detections > MAX_FUSED_DETECTIONS
                or REPLICATES * (detections + len(self.images)) > MAX_DRAWN_ROWS):
            return False
        categories = {weights: [drawable(*category) for category in self.ranked(self.combined(weights), 0.5)]
                      for weights in set(draws)}
        means = [self.mean_of_draw(categories[weights], Stream(seed, CONFIDENCE, replicate, stage))
                 for replicate, weights in enumerate(draws)]
        means = sorted(mean for mean in means if mean is not None)
        tail = len(means) // 40
        return (means[tail], means[-1 - tail]) if means else None

    def mean_of_draw(self, categories, stream):
        """Mean COCO precision of a bootstrap sample of the images; None if it has no box."""
        times, found = [0] * len(self.images), []
        for _ in times:
            times[stream.below(len(times))] += 1
        for images, hits, boxes in categories:
            positives = sum(times[image] for image in boxes)
            if positives:
                ends = list(itertools.accumulate(times[image] for image in images))
                ranks = [rank for hit in hits
                         for rank in range(ends[hit] - times[images[hit]] + 1, ends[hit] + 1)]
                found.append(average_precisions(ranks, positives)[0])
        return total(found) / len(found) if found else None


def comparable(row):
    image, category, score, box = row
    return image, category, score, list(box)


def drawable(ranked, boxes):
    """Images of a category's detections, indices of the hits among these, and images of its boxes."""
    return ([image for image, _, _ in ranked],
            [index for index, (_, _, hit) in enumerate(ranked) if hit], boxes)
