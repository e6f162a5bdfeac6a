# SPDX-License-Identifier: Apache-2.0
"""Boxes (left, top, width, height): overlap, matching, precision and fusion."""
import bisect

EPSILON = 2.0 ** -52
DETECTIONS_PER_IMAGE = 100


def common_length(begin, length, other_begin, other_length):
    """The common length of two intervals, in the program's order of operations, also for NaN."""
    end, other_end = length + begin, other_length + other_begin
    return ((other_end if other_end < end else end)
            - (other_begin if other_begin > begin else begin))


def intersection(a, b):
    width = common_length(a[0], a[2], b[0], b[2])
    if not width > 0:
        return 0
    height = common_length(a[1], a[3], b[1], b[3])
    return width * height if height > 0 else 0


def overlap(a, b):
    """Intersection over union."""
    shared = intersection(a, b)
    return shared / (a[2] * a[3] + b[2] * b[3] - shared) if shared > 0 else 0


def matches(boxes, detections, threshold):
    """(score, hit) of the detections of one image and category, as pycocotools matches them."""
    matched, found = [False] * len(boxes), []
    for score, box in sorted(detections, key=lambda detection: -detection[0])[:DETECTIONS_PER_IMAGE]:
        best, choice = min(threshold, 1 - 1e-10), None
        for index, truth in enumerate(boxes):
            if not matched[index] and overlap(box, truth) >= best:
                best, choice = overlap(box, truth), index
        if choice is not None:
            matched[choice] = True
        found.append((score, choice is not None))
    return found


def average_precisions(ranks, positives):
    """COCO's mean at 101 recalls, and the area under Pascal VOC's curve.

    `ranks` are the ranks of the hits among all detections by score; the best detection is 1.
    """
    recall = [hits / positives for hits in range(1, len(ranks) + 1)]
    precision = [hits / (rank + EPSILON) for hits, rank in enumerate(ranks, 1)]
    for index in range(len(precision) - 1, 0, -1):
        precision[index - 1] = max(precision[index - 1], precision[index])
    area = previous_recall = 0
    for r, p in zip(recall, precision):
        area += (r - previous_recall) * p
        previous_recall = r
    return mean_at_recalls(recall, precision), area


def mean_at_recalls(recall, precision):
    """The mean precision. The program adds the precision at recall 1 first, then at 0, 0.01, ... 0.99."""
    hit = bisect.bisect_left(recall, 1.0)
    coco, hit = precision[hit] if hit < len(recall) else 0, 0
    for index in range(100):
        while hit < len(recall) and recall[hit] < index * 0.01:
            hit += 1
        if hit == len(recall):
            break  # the precision at higher recalls is 0
        coco += precision[hit]
    return coco / 101


def best_cluster(boxes, box, min_overlap):
    """The index of the cluster box that overlaps `box` most and more than the minimum, or None."""
    best, found = min_overlap, None
    for index, other in enumerate(boxes):
        shared = overlap(other, box)
        if shared > best:
            best, found = shared, index
    return found


def suppress(candidates, min_overlap):
    """Non-maximum suppression of one category's (score, box), best first."""
    kept, boxes = [], []
    for score, box in candidates:
        if best_cluster(boxes, box, min_overlap) is None:
            kept.append((score, box))
            boxes.append(box)
    return kept


def fuse(candidates, min_overlap, weights):
    """Weighted boxes fusion (Solovyev, Wang, Gabruseva 2021) of one category's (score, box)."""
    clusters, boxes = [], []  # clusters: sum of scores, detections, sums of score * corner
    for score, box in candidates:
        found = best_cluster(boxes, box, min_overlap)
        if found is None:
            clusters.append([0, 0, 0, 0, 0, 0])
            boxes.append(box)
            found = len(clusters) - 1
        corners = (box[0], box[1], box[0] + box[2], box[1] + box[3])
        cluster = clusters[found]
        cluster[:] = [cluster[0] + score, cluster[1] + 1,
                      *(c + score * x for c, x in zip(cluster[2:], corners))]
        if cluster[1] > 1:
            left, top, right, bottom = (corner / cluster[0] for corner in cluster[2:])
            boxes[found] = [left, top, right - left, bottom - top]
    models = sum(weight > 0 for weight in weights)
    return [(cluster[0] / cluster[1] * min(models, cluster[1]) / sum(weights), box)
            for cluster, box in zip(clusters, boxes)]
