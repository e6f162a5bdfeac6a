# SPDX-License-Identifier: Apache-2.0
"""Hyper-parameters by a tree-structured Parzen estimator (Bergstra et al. 2011), as optuna draws them."""
import math

START_TRIALS, DRAWS, FULL_WEIGHTS, MAX_BEST = 10, 24, 25, 25


def in_order(numbers):
    result = 0.0
    for number in numbers:
        result += number
    return result


def weights_of(observations):
    weights = [1.0] * (observations + 1)
    ramp = observations - FULL_WEIGHTS
    for index in range(max(ramp, 0)):
        share = 0 if ramp == 1 else index / (ramp - 1)
        weights[index] = 1 / observations + share * (1 - 1 / observations)
    total = in_order(weights)
    return [weight / total for weight in weights]


def deviations(centres, low, high):
    """The larger distance of each of the sorted centres to its neighbours, within limits."""
    ends = [low, *centres, high]
    widths = [max(ends[i] - ends[i - 1], ends[i + 1] - ends[i]) for i in range(1, len(ends) - 1)]
    if len(centres) >= 2:
        widths[0], widths[-1] = centres[1] - centres[0], centres[-1] - centres[-2]
    smallest = (high - low) / min(100.0, len(centres) + 2)
    return [min(max(width, smallest), high - low) for width in widths]


class Estimator:
    """The density of the logarithms of observed values in [low, high]."""

    def __init__(self, low, high, values):
        self.bounds, self.low, self.high = (low, high), math.log(low), math.log(high)
        centres = [math.log(value) for value in values]
        order = sorted(range(len(centres)), key=centres.__getitem__)
        widths = deviations([centres[index] for index in order], self.low, self.high)
        components = [None] * len(centres)
        for index, width in zip(order, widths):
            components[index] = centres[index], width
        components.append((0.5 * (self.low + self.high), self.high - self.low))
        self.components, self.weights = components, weights_of(len(centres))
        self.masses = [log_mass((self.low - c) / d, (self.high - c) / d) for c, d in components]

    def draw(self, stream):
        quantile, total, chosen = stream.uniform(), 0.0, len(self.weights) - 1
        for index, weight in enumerate(self.weights[:-1]):
            total += weight
            if quantile < total:
                chosen = index
                break
        centre, deviation = self.components[chosen]
        number = centre + deviation * stream.normal()
        while not self.low <= number <= self.high:
            number = centre + deviation * stream.normal()
        return min(max(math.exp(number), self.bounds[0]), self.bounds[1])

    def log_density(self, value):
        number = math.log(value)
        terms = []
        for (centre, deviation), weight, mass in zip(self.components, self.weights, self.masses):
            z = (number - centre) / deviation
            terms.append(-0.5 * z * z - 0.5 * math.log(2 * math.pi) - mass - math.log(deviation)
                         + math.log(weight))
        largest = max(terms)
        return math.log(in_order(math.exp(term - largest) for term in terms)) + largest


def log_mass(a, b):
    """log(Phi(b) - Phi(a)) for a <= 0 <= b."""
    return math.log1p(-0.5 * math.erfc(-a / math.sqrt(2)) - 0.5 * math.erfc(b / math.sqrt(2)))


def suggest(low, high, observations, stream):
    """`observations` are (value, accuracy or None of a running trial)."""
    if low == high:
        return low
    finished = [index for index, (_, accuracy) in enumerate(observations) if accuracy is not None]
    if len(finished) < START_TRIALS:
        share, start = stream.uniform(), math.log(low)
        return min(max(math.exp(start + share * (math.log(high) - start)), low), high)
    finished.sort(key=lambda index: -observations[index][1])
    chosen = set(finished[:min(math.ceil(0.1 * len(finished)), MAX_BEST)])
    best = Estimator(low, high, [value for i, (value, _) in enumerate(observations) if i in chosen])
    others = Estimator(low, high, [value for i, (value, _) in enumerate(observations) if i not in chosen])
    candidates = [best.draw(stream) for _ in range(DRAWS)]
    return max(candidates, key=lambda value: best.log_density(value) - others.log_density(value))
