# SPDX-License-Identifier: Apache-2.0
"""The edit distance of networks (Jin, Song, Hu 2019), as in nni 2.10.1."""
import functools
import math


class Descriptor:
    """The layers of the longest chain to the last node, and the ways around parts of it."""

    def __init__(self, network):
        nodes = network.nodes
        before, length = {}, {}
        for node in nodes:
            length[id(node)], before[id(node)] = 1, None
            for read in node.inputs:
                if length[id(read)] + 1 > length[id(node)]:
                    length[id(node)], before[id(node)] = length[id(read)] + 1, read
        self.place, node = {}, nodes[-1]
        while node is not None:
            self.place[id(node)] = length[id(node)] - 1
            node = before[id(node)]
        self.layers, self.skips = [], []
        for node in nodes:
            if id(node) in self.place:
                self.layers.append(layer_of(node))
                self.add_skips(node, before)

    def is_equal(self, other):
        """Whether the distance is 0; others differ by more than 1e-5."""
        return self.layers == other.layers and sorted(self.skips) == sorted(other.skips)

    def add_skips(self, node, before):
        """A skip is (layers before it, layers before its end, kind of its end)."""
        is_chain_passed = False
        for read in node.inputs:
            if read is before[id(node)] and not is_chain_passed:
                is_chain_passed = True
                continue
            while read is not None and id(read) not in self.place:
                read = before[id(read)]
            first = 0 if read is None else self.place[id(read)] + 1
            self.skips.append((first, self.place[id(node)], node.kind))


def layer_of(node):
    if node.kind in ("convolution", "pool"):
        return node.kind, node.filters, node.kernel, node.stride
    return node.kind, 0, 0, 0


@functools.lru_cache(maxsize=None)
def layer_distance(a, b):
    if a[0] != b[0]:
        return 1.0
    total = 0.0
    for x, y in zip(a[1:], b[1:]):
        total += abs(x - y) / max(x, y) if max(x, y) else 0
    return total / 3


def alignment_cost(a, b):
    while a and b and a[0] == b[0]:
        a, b = a[1:], b[1:]
    while a and b and a[-1] == b[-1]:
        a, b = a[:-1], b[:-1]
    band = 8 + abs(len(a) - len(b))
    while (cost := banded_cost(a, b, band)) > band and band < max(len(a), len(b)):
        band *= 2
    return cost


def banded_cost(a, b, band):
    """The cost of the cheapest alignment whose steps stay near the diagonal (Ukkonen 1985)."""
    above = [float(j) if j <= band else math.inf for j in range(len(b) + 1)]
    for i, layer in enumerate(a):
        row, first = [math.inf] * (len(b) + 1), max(0, i - band)
        if i < band:
            row[0] = i + 1.0
        for j in range(first, min(len(b), i + 1 + band)):
            row[j + 1] = min(row[j] + 1, above[j + 1] + 1, above[j] + layer_distance(layer, b[j]))
        above = row
    return above[-1]


def skip_distance(a, b):
    if a[2] != b[2]:
        return 1.0
    length_a, length_b = a[1] - a[0], b[1] - b[0]
    return (abs(a[0] - b[0]) + abs(length_a - length_b)) / (max(a[0], b[0]) + max(length_a, length_b))


def skips_cost(fewer, more):
    costs = [[skip_distance(a, b) for b in more] for a in fewer]
    return cheapest_assignment(costs, len(more)) + (len(more) - len(fewer))


def cheapest_assignment(costs, columns):
    """The Hungarian method; row and column 0 are auxiliary."""
    rows = len(costs)
    row_potential, column_potential = [0.0] * (rows + 1), [0.0] * (columns + 1)
    row_of, way = [0] * (columns + 1), [0] * (columns + 1)
    for row in range(1, rows + 1):
        row_of[0], column = row, 0
        smallest, used = [math.inf] * (columns + 1), [False] * (columns + 1)
        while True:
            used[column] = True
            current, following, delta = row_of[column], 0, math.inf
            for j in range(1, columns + 1):
                if used[j]:
                    continue
                reduced = costs[current - 1][j - 1] - row_potential[current] - column_potential[j]
                if reduced < smallest[j]:
                    smallest[j], way[j] = reduced, column
                if smallest[j] < delta:
                    delta, following = smallest[j], j
            for j in range(columns + 1):
                if used[j]:
                    row_potential[row_of[j]] += delta
                    column_potential[j] -= delta
                else:
                    smallest[j] -= delta
            column = following
            if row_of[column] == 0:
                break
        while column:
            row_of[column] = row_of[way[column]]
            column = way[column]
    total = 0.0
    for j in range(1, columns + 1):
        if row_of[j]:
            total += costs[row_of[j] - 1][j - 1]
    return total


def edit_distance(a, b):
    skips = (a.skips, b.skips) if len(a.skips) <= len(b.skips) else (b.skips, a.skips)
    return alignment_cost(a.layers, b.layers) + skips_cost(*skips)
