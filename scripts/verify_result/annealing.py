# SPDX-License-Identifier: Apache-2.0
"""Parents by simulated annealing on a Gaussian process over edit distances, as AIPerf chooses them.

Sums have the order of the program's, so that equal values are equal in both.
"""
import json
import math

from distance import Descriptor, edit_distance
from network import edited_network
from places import draw_edit

LOWEST_TEMPERATURE, CHILDREN, DEVIATIONS = 1e-4, 8, 2.576


def product(a, b):
    total = 0.0
    for left, right in zip(a, b):
        total += left * right
    return total


def covariance(distance):
    return math.exp(-distance * distance)


class Process:
    """A Gaussian process; `distances[i]` has those to the points before i, and 0."""

    def __init__(self, distances, values):
        noise = 0.01
        while (lower := factor(distances, noise)) is None:
            noise *= 10
        self.lower, self.weights = lower, self.solved(lower, values)
        for i in reversed(range(len(values))):
            for j in range(i + 1, len(values)):
                self.weights[i] -= lower[j][i] * self.weights[j]
            self.weights[i] /= lower[i][i]

    @staticmethod
    def solved(lower, values):
        """Solves lower x = values."""
        x = list(values)
        for i, row in enumerate(lower):
            x[i] = (x[i] - product(row[:i], x)) / row[i]
        return x

    def bound(self, distances):
        """The upper bound at a point with these distances."""
        shared = [covariance(distance) for distance in distances]
        explained = self.solved(self.lower, shared)
        deviation = math.sqrt(max(0.0, 1 - product(explained, explained)))
        return product(shared, self.weights) + DEVIATIONS * deviation


def factor(distances, noise):
    """The Cholesky factor of the covariance; None if it is indefinite."""
    lower = []
    for i, row in enumerate(distances):
        lower.append([])
        for j, distance in enumerate(row):
            rest = covariance(distance) + (noise if i == j else 0) - product(lower[i], lower[j][:j])
            if i == j and not rest > 0:
                return None
            lower[i].append(math.sqrt(rest) if i == j else rest / lower[j][j])
    return lower


def standardized(accuracies):
    mean = variance = 0.0
    for accuracy in accuracies:
        mean += accuracy / len(accuracies)
    for accuracy in accuracies:
        variance += (accuracy - mean) * (accuracy - mean) / len(accuracies)
    scale = 1 / math.sqrt(variance) if variance > 0 else 1
    return [(accuracy - mean) * scale for accuracy in accuracies]


class Networks:
    """Networks, descriptors and distances of edit scripts, which later proposals need again."""

    def __init__(self, config):
        self.config, self.descriptors, self.distances = config, {}, {}

    def network(self, edits):
        return edited_network(self.config, edits)

    def describe(self, edits):
        """The key of a descriptor."""
        key = json.dumps(edits)
        if key not in self.descriptors:
            self.descriptors[key] = Descriptor(self.network(edits))
        return key

    def are_equal(self, a, b):
        return self.descriptors[a].is_equal(self.descriptors[b])

    def distance(self, a, b):
        if (a, b) not in self.distances:
            self.distances[a, b] = edit_distance(self.descriptors[a], self.descriptors[b])
        return self.distances[a, b]


class Annealer:
    """`population` are (edits, accuracy, whether the weights are missing)."""

    def __init__(self, networks, population, stream):
        self.networks, self.stream = networks, stream
        self.values = standardized([row[1] for row in population])
        self.known = [networks.describe(row[0]) for row in population]
        self.queue = [(value, index, edits) for index, (value, (edits, _, is_missing))
                      in enumerate(zip(self.values, population)) if not is_missing]
        rows = [[networks.distance(a, b) for b in self.known[:i]] + [0.0]
                for i, a in enumerate(self.known)]
        self.process = Process(rows, self.values)
        self.largest, self.best = -math.inf, None

    def run(self):
        """(index of the parent, edits) of the best child; None if there is none."""
        temperature = 1.0
        while temperature > LOWEST_TEMPERATURE and self.queue:
            first = max(range(len(self.queue)), key=lambda i: self.queue[i][0])  # of equal ones
            value, index, edits = self.queue.pop(first)
            if math.exp(min((value - self.largest) / temperature, 1.0)) >= self.stream.uniform():
                network = self.networks.network(edits)
                for _ in range(CHILDREN):
                    self.add_child(index, edits, draw_edit(network, self.stream))
            temperature /= 2
        return self.best

    def add_child(self, index, edits, edit):
        if edit is None:
            return
        edits = [*edits, edit]
        key = self.networks.describe(edits)
        if any(self.networks.are_equal(key, known) for known in self.known):
            return
        self.known.append(key)
        value = self.process.bound([self.networks.distance(key, known)
                                    for known in self.known[:len(self.values)]])
        if value > self.largest:
            self.largest, self.best = value, (index, edits)
        self.queue.append((value, index, edits))


def anneal(networks, population, stream):
    return Annealer(networks, population, stream).run() if population else None
