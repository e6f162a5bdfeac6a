# SPDX-License-Identifier: Apache-2.0
"""Image classification: Top-1 and Top-5 accuracy, and their intervals."""
import math

from arithmetic import fraction
from probabilities import ProbabilityTask, predicted_class
from random_stream import CONFIDENCE, REPLICATES, Stream, draws_of_members

MAX_ADDITIONS = 10 ** 7
MAX_DRAWN_SAMPLES = 2 * 10 ** 6
BOTH_STAGES = 2  # stream of sample draws after draws of members


def wilson_interval(correct, samples):
    """E. B. Wilson, J. Am. Stat. Assoc. 22 (1927)."""
    if not samples:
        return None
    z, n = 1.959963984540054, float(samples)
    p = correct / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


class Classification(ProbabilityTask):
    metric = "top_1_accuracy"
    member_keys = ("quality", "quality_top_5")
    ensemble_keys = ("ensemble", "ensemble_top_5", "ensemble_majority")

    def __init__(self, run):
        super().__init__(run, 1, int(run.config["workload.classes"]))

    def top_k(self, values):
        """Numbers of samples: with the label first, with it among the first five, and all."""
        first = five = scored = 0
        for sample, label in self.scored_rows():
            scored += 1
            row = self.row(values, sample)
            if predicted_class(row) is None:
                continue
            own = row[label]
            ahead = sum(score > own or (score == own and index < label)
                        for index, score in enumerate(row))
            first += ahead == 0
            five += ahead < 5
        return first, five, scored

    def score_member(self, values):
        first, five, scored = self.top_k(values)
        return {"quality": fraction(first, scored), "quality_top_5": fraction(five, scored)}

    def score_ensemble(self, values, majority):
        first, five, scored = self.top_k(values)
        majority_first, _, _ = self.top_k(majority)
        numbers = {"ensemble": fraction(first, scored), "ensemble_top_5": fraction(five, scored),
                   "ensemble_majority": fraction(majority_first, scored)}
        return numbers, wilson_interval(first, scored)

    def members_interval(self, seed):
        """The interval over draws of members and of samples."""
        scored = [sample for sample, label in enumerate(self.labels) if label != -1]
        draws = draws_of_members(seed, self.members)
        additions = len(scored) * self.classes * self.members * len(set(draws))
        if additions > MAX_ADDITIONS or REPLICATES * len(scored) > MAX_DRAWN_SAMPLES:
            return False
        if not scored:
            return None
        correct = {weights: self.correct_samples(weights, scored) for weights in set(draws)}
        accuracies = []
        for replicate, weights in enumerate(draws):
            stream = Stream(seed, CONFIDENCE, replicate, BOTH_STAGES)
            hits = sum(correct[weights][stream.below(len(scored))] for _ in scored)
            accuracies.append(hits / len(scored))
        accuracies.sort()
        return accuracies[25], accuracies[-26]

    def correct_samples(self, weights, scored):
        """Whether the members with these weights predict the label, for each scored sample."""
        found = []
        for sample in scored:
            scores, label = self.weighted_scores(weights, sample), self.labels[sample]
            own = scores[label]
            is_first = all(score < own if index < label else score <= own
                           for index, score in enumerate(scores))
            found.append(is_first and not (self.by_majority and own == 0))
        return found

    def weighted_scores(self, weights, sample):
        scores = [0.0] * self.classes
        for weight, values in zip(weights, self.member_values):
            if not weight:
                continue
            row = self.row(values, sample)
            if self.by_majority:
                choice = predicted_class(row)
                row = [float(index == choice) for index in range(self.classes)]
            scores = [score + weight * value for score, value in zip(scores, row)]
        return scores
