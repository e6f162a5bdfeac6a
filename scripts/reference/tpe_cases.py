#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/reference/search_tpe.json: what optuna computes where search/tpe.hpp follows it.

densities: log densities of optuna's Parzen estimators, for 0 to 120 observations
weights:   the weights of an estimator's components
splits:    which trials are the best ones, with equal values and with running trials
suggested: how many of 20,000 suggestions are below each of 999 bounds, for fixed trials

usage: tpe_cases.py [DIRECTORY]     (default: tests/data/reference of this repository)
Needs optuna 5.0.0, whose private functions it calls, and some minutes.
"""
import json
import math
import pathlib
import random
import sys
import warnings

import numpy
import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.samplers import TPESampler
from optuna.samplers._tpe import sampler as tpe
from optuna.samplers._tpe.parzen_estimator import _ParzenEstimator

NUMBERS = {"linear": FloatDistribution(-1, 3), "logarithmic": FloatDistribution(1e-5, 0.1, log=True)}
CHOICES = CategoricalDistribution([8.0, 16.0, 32.0])
SUGGESTIONS, BOUNDS = 20_000, 999


def sampler(seed, liar=False):
    return TPESampler(multivariate=False, constant_liar=liar, seed=seed)


def dimension(name, distribution):
    if name == "choices":
        return {"name": name, "choices": list(distribution.choices)}
    return {"name": name, "low": distribution.low, "high": distribution.high, "log": distribution.log}


def draw(distribution, stream):
    if not distribution.log:
        return stream.uniform(distribution.low, distribution.high)
    return math.exp(stream.uniform(math.log(distribution.low), math.log(distribution.high)))


def density_case(name, distribution, count, stream):
    """With fewer than 25 observations, which have equal weights, some of them are equal."""
    if name == "choices":
        observed = [stream.randrange(3) for _ in range(count)]
        points = [0, 1, 2]
    else:
        observed = [draw(distribution, stream) for _ in range(count)]
        if 3 < count < 25:
            observed[2] = observed[0]
            observed[1] = distribution.low
        points = [draw(distribution, stream) for _ in range(20)] + observed[:3]
        points += [distribution.low, distribution.high]
    estimator = _ParzenEstimator({name: numpy.array(observed, dtype=float)}, {name: distribution},
                                 sampler(0)._parzen_estimator_parameters)
    densities = estimator.log_pdf({name: numpy.array(points, dtype=float)})
    if name == "choices":
        observed, points = ([distribution.choices[i] for i in list_] for list_ in (observed, points))
    return {"dimension": dimension(name, distribution), "observed": observed, "points": points,
            "log_densities": densities.tolist()}


def densities(stream):
    return [density_case(name, distribution, count, stream)
            for name, distribution in {**NUMBERS, "choices": CHOICES}.items()
            for count in (0, 1, 2, 3, 5, 24, 25, 26, 27, 60, 120)]


def weights(count):
    """The weights of the observations and of the prior, as in _ParzenEstimator.__init__."""
    result = numpy.append(tpe.default_weights(count), [1.0])
    return (result / result.sum()).tolist()


def study_of(trials):
    """A study in which the trials have the given values of x and accuracies; None: it runs."""
    study = optuna.create_study(direction="maximize")
    for trial in trials:
        asked = study.ask(fixed_distributions={"x": NUMBERS["linear"]})
        asked.storage.set_trial_param(asked._trial_id, "x", trial["value"], NUMBERS["linear"])
        if trial["accuracy"] is not None:
            study.tell(asked, trial["accuracy"])
    return study


def some_trials(count, stream, running=()):
    return [{"value": round(stream.uniform(-1, 3), 3),
             "accuracy": None if i in running else round(stream.random(), 2)} for i in range(count)]


def split_case(trials):
    study = study_of(trials)
    stored = study.get_trials(deepcopy=False)
    finished = sum(trial["accuracy"] is not None for trial in trials)
    best, others = tpe._split_trials(study, stored, tpe.default_gamma(finished))
    return {"trials": trials, "best": [trial.params["x"] for trial in best],
            "others": [trial.params["x"] for trial in others]}


def splits(stream):
    return [split_case(some_trials(count, stream, running))
            for count, running in ((10, ()), (11, ()), (40, ()), (300, ()), (30, (3, 17, 29)))]


def suggested(name, distribution, seed):
    """Trials whose accuracy has two maxima, and the distribution of the next suggestion."""
    stream = random.Random(seed)
    study, trials = optuna.create_study(direction="maximize"), []
    for _ in range(40):
        value = draw(distribution, stream)
        share = (math.log(value / distribution.low) / math.log(distribution.high / distribution.low)
                 if distribution.log else (value - distribution.low) / (distribution.high - distribution.low))
        accuracy = math.exp(-30 * (share - 0.3) ** 2) + 0.8 * math.exp(-60 * (share - 0.8) ** 2)
        trials.append({"value": value, "accuracy": accuracy / 2})
        study.add_trial(optuna.trial.create_trial(value=accuracy / 2, params={"x": value},
                                                  distributions={"x": distribution}))
    following, chosen = study.ask(), sampler(seed)
    values = sorted(chosen.sample_independent(study, study._storage.get_trial(following._trial_id),
                                              "x", distribution) for _ in range(SUGGESTIONS))
    bounds = [values[SUGGESTIONS * (i + 1) // (BOUNDS + 1)] for i in range(BOUNDS)]
    return {"dimension": dimension(name, distribution), "trials": trials, "suggestions": SUGGESTIONS,
            "bounds": bounds, "below": [int(numpy.searchsorted(values, bound)) for bound in bounds]}


def main():
    assert optuna.__version__ == "5.0.0", optuna.__version__
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    default = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "reference"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    folder.mkdir(parents=True, exist_ok=True)
    stream = random.Random(34)
    content = {"optuna": optuna.__version__, "densities": densities(stream),
               "weights": [weights(count) for count in (0, 1, 24, 25, 26, 27, 60, 120)],
               "splits": splits(stream),
               "suggested": [suggested(*item, seed) for seed, item in enumerate(NUMBERS.items())]}
    text = json.dumps(content, separators=(",", ":")).replace("],", "],\n").replace("},", "},\n")
    (folder / "search_tpe.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
