#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/reference/metrics_evaluation.json and metrics_score.json.

metrics_evaluation.json: top-k without ties from torch.topk and with ties by sorting; Wilson
intervals as the roots of their quadratic equation in decimals of 50 digits; soft, majority and
out-of-bag votes of five members from NumPy in float64.
metrics_score.json: equations 6 to 8 in fractions and decimals.

usage: metric_cases.py [DIRECTORY]     (default: tests/data/reference of this repository)
Needs PyTorch and NumPy; the committed files name the versions that wrote them.
"""
import decimal
import fractions
import json
import pathlib
import sys

import numpy
import torch

Decimal, Fraction = decimal.Decimal, fractions.Fraction


def distinct_scores():
    """Rows of 17 different multiples of 1/64: multiplication modulo a prime is a permutation."""
    return [[((row + 1) * i * 5 + 3 * row) % 17 / 64 - 0.125 for i in range(17)]
            for row in range(16)]


def tied_scores():
    """Rows of 8 scores with at most three distinct values."""
    return [[((3 * i + row) * (i + 2 * row) % (1 + row % 3)) / 4 for i in range(8)]
            for row in range(24)]


def top_k_without_ties():
    scores = torch.tensor(distinct_scores(), dtype=torch.float64)
    best = torch.topk(scores, 5).indices
    labels = [int(scores[row].argsort()[-1 - row % 8]) for row in range(len(scores))]
    hits = best == torch.tensor(labels)[:, None]
    return {"scores": scores.tolist(), "top_5": best.tolist(), "labels": labels,
            "correct_1": int(hits[:, :1].sum()), "correct_5": int(hits.sum())}


def top_k_with_ties():
    """Equal scores rank by class, the lower first."""
    scores = tied_scores()
    ranked = [sorted(range(8), key=lambda c: (-row[c], c)) for row in scores]
    return {"scores": scores, "top_5": [order[:5] for order in ranked]}


def normal_quantile():
    """x with P(|X| <= x) = 0.95, by Newton's method on the power series of the distribution."""
    pi = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
    x = Decimal(2)
    for _ in range(8):
        term, total = x, x
        for k in range(1, 120):
            term *= -x * x / (2 * k)
            total += term / (2 * k + 1)
        density = (-x * x / 2).exp() / (2 * pi).sqrt()
        x -= (total / (2 * pi).sqrt() - Decimal("0.475")) / density
    return x


def wilson_cases():
    """The two p at which |correct / n - p| is z standard deviations of Binomial(n, p) / n."""
    z = normal_quantile()
    cases = []
    for correct, n in ((0, 1), (1, 1), (0, 20), (3, 7), (15, 148), (81, 263), (1, 29),
                       (7568, 10000), (38150, 50000), (49999, 50000), (1, 10**9)):
        share = Decimal(correct) / n
        a, b, c = 1 + z * z / n, -(2 * share + z * z / n), share * share
        root = (b * b - 4 * a * c).sqrt()
        cases.append({"correct": correct, "samples": n, "low": float((-b - root) / (2 * a)),
                      "high": float((-b + root) / (2 * a))})
    return cases


MEMBERS, SAMPLES, CLASSES = 5, 40, 7


def member_probabilities(member):
    """fp32 (samples, classes) of one member. In every fifth sample each member prefers another class."""
    i = numpy.arange(SAMPLES)[:, None]
    c = numpy.arange(CLASSES)[None, :]
    logits = ((i * 31 + c * 17 + member * 23 + i * c * (member + 2)) % 29) / 6
    logits[::5] = (c == (i[::5] + member) % CLASSES) * 2.0
    return torch.softmax(torch.tensor(logits, dtype=torch.float32), dim=1).numpy()


def out_of_bag_masks():
    return [[int((i * 5 + m * 7 + i * m) % 8 < 3) for i in range(SAMPLES)]
            for m in range(MEMBERS)]


def out_of_bag_quality(rows, labels):
    """Out-of-bag quality from mean probabilities in float64."""
    masks = numpy.array(out_of_bag_masks(), dtype=bool)
    quality = {"correct_1": 0, "correct_5": 0, "counted": 0, "covered": 0}
    for i, label in enumerate(labels):
        if not masks[:, i].any():
            continue
        quality["covered"] += 1
        if label < 0:
            continue
        mean = rows[masks[:, i], i].mean(axis=0)
        rank = (mean > mean[label]).sum()
        quality["counted"] += 1
        quality["correct_1"] += int(rank < 1)
        quality["correct_5"] += int(rank < 5)
    return quality


def clear_labels(rows):
    """For each sample a class whose mean over the voting members is far from the means of all other
    classes, so that its rank does not depend on rounding; -1, which is not counted, without one."""
    masks = numpy.array(out_of_bag_masks(), dtype=bool)
    labels = []
    for i in range(SAMPLES):
        chosen = masks[:, i] if masks[:, i].any() else numpy.ones(MEMBERS, dtype=bool)
        mean = rows[chosen, i].mean(axis=0)
        order = numpy.argsort(-mean, kind="stable")
        wanted = [order[(i + k) % CLASSES] for k in range(CLASSES)]
        gaps = [numpy.abs(numpy.delete(mean, c) - mean[c]).min() for c in wanted]
        labels.append(int(next((c for c, gap in zip(wanted, gaps) if gap > 1e-5), -1)))
    return labels


def vote_cases():
    members = [member_probabilities(m) for m in range(MEMBERS)]
    rows = numpy.array(members, dtype=numpy.float64)
    choices = rows.argmax(axis=2)  # in a tie the lowest
    shares = numpy.stack([(choices == c).mean(axis=0) for c in range(CLASSES)], axis=1)
    labels = clear_labels(rows)
    return {"classes": CLASSES, "members": [member.ravel().tolist() for member in members],
            "soft_vote": rows.mean(axis=0).ravel().tolist(), "majority": shares.ravel().tolist(),
            "out_of_bag": out_of_bag_masks(), "labels": labels,
            "out_of_bag_quality": out_of_bag_quality(rows, labels)}


def penalty_cases():
    """Equation 8 in decimals: (achieved / target) ^ n. The first two are the paper's."""
    cases = [("0.7568", "0.763", 5, "0.96"), ("0.3224", "0.35", 10, "0.44"),
             ("0.763", "0.763", 5, None), ("0.8", "0.763", 5, None), ("0.5", "0.763", 5, None),
             ("0.35", "0.7", 3, None), ("0.001", "0.35", 10, None), ("0.9", "0.35", 2.5, None)]
    return [{"achieved": float(achieved), "target": float(target), "exponent": exponent,
             "coefficient": float((Decimal(achieved) / Decimal(target)) ** Decimal(str(exponent))),
             **({"paper": float(paper)} if paper else {})}
            for achieved, target, exponent, paper in cases]


RESNET50_V1 = 3 * 7739990016  # FLOPs to train on one sample, table 3 of the paper


def flops_cases():
    """Equation 6: the work of all groups / the longest time. Equation 7: this * equation 8."""
    runs = [[(512, 2)], [(1281167, 3600)], [(1000, 7), (1010, 8), (990, 7.5), (1005, 7.75)],
            [(90 * 1281167, 86400.125), (90 * 1280000, 90000.5)],
            [(3, 0.000244140625), (5, 0.0001220703125)]]
    cases = []
    for groups in runs:
        longest = max(Fraction(seconds) for _, seconds in groups)
        flops = sum(samples for samples, _ in groups) * RESNET50_V1 / longest
        coefficient = (Fraction("0.7568") / Fraction("0.763")) ** 5
        cases.append({"groups": groups, "flops": float(flops),
                      "images_per_second": float(flops / RESNET50_V1),
                      "vflops": float(flops * coefficient)})
    return {"flops_per_sample": RESNET50_V1, "achieved": 0.7568, "target": 0.763, "exponent": 5,
            "runs": cases}


def write(path, content):
    text = json.dumps(content, separators=(",", ":")).replace("],", "],\n").replace("},", "},\n")
    path.write_text(text + "\n")


def main():
    decimal.getcontext().prec = 50
    default = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "reference"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    folder.mkdir(parents=True, exist_ok=True)
    versions = {"torch": torch.__version__, "numpy": numpy.__version__}
    write(folder / "metrics_evaluation.json",
          {**versions, "top_k": top_k_without_ties(), "top_k_ties": top_k_with_ties(),
           "wilson": wilson_cases(), "votes": vote_cases()})
    write(folder / "metrics_score.json", {"penalties": penalty_cases(), "scores": flops_cases()})


if __name__ == "__main__":
    main()
