# SPDX-License-Identifier: Apache-2.0
"""What an architecture search proposes after the lines that it has seen."""
import json
import math

from annealing import anneal
from density import suggest
from network import edited_network
from places import draw_edit
from random_stream import Stream
from trials import MAX_DRAW

PROPOSAL, HYPER_PARAMETERS = 13, 14  # RandomPurpose of the program
POPULATION, HISTORY_CAP, TOURNAMENT, FIRST_DRAWN = 100, 256, 10, 3
ROOT = {"group": -1, "sequence": -1}


def dimensions(config):
    """(name, lowest, highest, value of the root) of each hyper-parameter."""
    rate, decay = float(config["training.learning_rate"]), float(config["training.weight_decay"])
    lowest, highest = json.loads(config["search.rate_factors"])
    low, high = json.loads(config["search.weight_decays"])
    return [("learning_rate", rate * lowest, rate * highest, rate), ("weight_decay", low, high, decay)]


def trial_id(group, trial):
    return {"group": group, "sequence": trial.proposed["sequence"]}


class Seen:
    """The trials in the first seen[m] lines of each group m, in the order of (sequence, group)."""

    def __init__(self, histories, seen):
        self.rows = []  # (group, trial, accuracy or None, whether it is running)
        for history, lines in zip(histories, seen):
            for trial in history.trials[:(lines + 1) // 2]:
                running = 2 * trial.proposed["sequence"] + 1 == lines
                accuracy = None if running or not trial.has_completed() else trial.accuracy[-1]
                self.rows.append((history.group, trial, accuracy, running))
        self.rows.sort(key=lambda row: (row[1].proposed["sequence"], row[0]))

    def completed(self):
        return [row for row in self.rows if row[2] is not None]

    def observations(self, dimension):
        return [(trial.proposed["hyper_parameters"][dimension]["value"], accuracy)
                for _, trial, accuracy, running in self.rows if running or accuracy is not None]


def tournament_winner(population, missing, stream):
    """The row of the most accurate, or earliest of equal ones, among ten; None if there is none."""
    order, winner = list(range(len(population))), None
    for i in range(min(len(order), TOURNAMENT)):
        other = i + stream.below(len(order) - i)
        order[i], order[other] = order[other], order[i]
        group, trial, accuracy, _ = population[order[i]]
        rank = -accuracy, order[i]
        if trial_id(group, trial) not in missing and (winner is None or rank < winner):
            winner = rank
    return None if winner is None else population[winner[1]]


def random_parent(population, missing, stream):
    rows = [None] + [row for row in population if trial_id(row[0], row[1]) not in missing]
    return rows[stream.below(len(rows))]


def proposal(networks, histories, group, stored):
    """(parent, edits, hyper-parameters) of the stored proposal, computed again."""
    config = networks.config
    seen = Seen(histories, stored["seen"])
    names = group, stored["sequence"], stored["draw"]
    parent, edits = ROOT, []
    if stored["sequence"] > 0:
        stream = Stream(int(config["run.seed"]), PROPOSAL, *names)
        has_edit = stored["draw"] < MAX_DRAW
        parent, edits = child(networks, seen.completed(), stored["missing"], has_edit, stream)
    return parent, edits, hyper_parameters(config, seen, stored, parent, names)


def child(networks, completed, missing, has_edit, stream):
    """(parent, edits) of a trial after the first."""
    config, edits = networks.config, []
    if config["search.parent"] == "bayesian" and has_edit:
        rows = completed[-HISTORY_CAP:]
        old = len(rows) - POPULATION  # the Gaussian process knows these, but they are no parents
        best = anneal(networks, [(trial.proposed["edits"], accuracy,
                                  i < old or trial_id(group, trial) in missing)
                                 for i, (group, trial, accuracy, _) in enumerate(rows)], stream)
        if best:
            return trial_id(*rows[best[0]][:2]), best[1]
    row = choose(config, completed[-POPULATION:], missing, stream)
    if row:
        edits = list(row[1].proposed["edits"])
    edit = draw_edit(edited_network(config, edits), stream) if has_edit else None
    return trial_id(row[0], row[1]) if row else ROOT, edits + ([edit] if edit else [])


def choose(config, population, missing, stream):
    by_rule = random_parent if config["search.parent"] == "random" else tournament_winner
    return by_rule(population, missing, stream)


def hyper_parameters(config, seen, stored, parent, names):
    stream = Stream(int(config["run.seed"]), HYPER_PARAMETERS, *names)
    of_parent = [trial.proposed["hyper_parameters"] for group, trial, _, _ in seen.rows
                 if trial_id(group, trial) == parent]
    values = []
    for index, (name, low, high, start) in enumerate(dimensions(config)):
        value = start
        if stored["sequence"] >= FIRST_DRAWN:
            value = suggest(low, high, seen.observations(index), stream)
        elif of_parent:
            value = of_parent[0][index]["value"]
        values.append({"name": name, "value": value})
    return values


def is_same(stored, computed):
    """Drawn numbers may differ in their last digits on another machine."""
    parent, edits, values = computed
    return (stored["parent"] == parent and stored["edits"] == edits
            and [row["name"] for row in stored["hyper_parameters"]] == [row["name"] for row in values]
            and all(math.isclose(a["value"], b["value"], rel_tol=1e-9)
                    for a, b in zip(stored["hyper_parameters"], values)))
