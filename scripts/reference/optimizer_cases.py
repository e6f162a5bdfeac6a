#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/reference/sgd.json, optimizers.json and schedule.json.

sgd.json: torch.optim.SGD in float64 on two parameter groups, with and without weight decay: the
parameters and the velocities (momentum_buffer) after each of 12 steps, whose rates differ.
optimizers.json: the same after some of the steps, by torch.optim for Adam, AdamW and Adagrad, and by
formulas in NumPy for optimizers that PyTorch lacks: SGD without momentum correction, LARS and LAMB.
LARS follows lars_optimizer.py in MLPerf's ResNet-50 for TensorFlow; with momentum correction, the
learning rate is outside the velocity as in NVIDIA's apex LARC. LAMB is algorithm 2 of You et al. 2020 with
bias correction: apex's FusedLAMB without its limit on the gradient's norm.
schedule.json: the rate of every step from PyTorch's schedulers, stepped once per iteration, and from
the formula in decimals of 60 digits.

usage: optimizer_cases.py [DIRECTORY]     (default: tests/data/reference of this repository)
Needs PyTorch; the committed files name the version that wrote them.
"""
import decimal
import json
import pathlib
import sys

import numpy
import torch
from torch.optim import lr_scheduler

STEPS = 12
SIZES = {"conv.weight": 6, "norm.weight": 3, "norm.bias": 3, "fc.weight": 6, "fc.bias": 2}
WEIGHTS = ("conv.weight", "fc.weight")  # parameters that decay by default
RATES = [(step * 5 % 7 + 1) / 64 for step in range(STEPS)]  # 1/64 to 7/64, exact in fp32


def start_values(name):
    """Start values: multiples of 1/8 in [-1, 1), which differ between parameters."""
    return [((7 * i + 3 * len(name)) % 16 - 8) / 8 for i in range(SIZES[name])]


def gradient(name, step):
    return [((5 * i + 11 * step + len(name)) % 17 - 8) / 8 for i in range(SIZES[name])]


def sgd_case(momentum, nesterov, weight_decay, everywhere):
    tensors = {name: torch.tensor(start_values(name), dtype=torch.float64) for name in SIZES}
    decayed = [tensors[name] for name in SIZES if everywhere or name in WEIGHTS]
    plain = [tensors[name] for name in SIZES if not everywhere and name not in WEIGHTS]
    optimizer = torch.optim.SGD(
        [{"params": decayed, "weight_decay": weight_decay}, {"params": plain, "weight_decay": 0}],
        lr=1, momentum=momentum, nesterov=nesterov)
    after = []
    for step, rate in enumerate(RATES):
        for name, tensor in tensors.items():
            tensor.grad = torch.tensor(gradient(name, step), dtype=torch.float64)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        after.append({name: tensor.tolist() for name, tensor in tensors.items()})
        if momentum:  # without momentum PyTorch keeps no velocity
            after[-1]["velocity"] = {
                name: optimizer.state[tensor]["momentum_buffer"].tolist()
                for name, tensor in tensors.items()}
    return {"momentum": momentum, "nesterov": nesterov, "weight_decay": weight_decay,
            "weight_decay_on_norm_and_bias": everywhere, "after": after}


def sgd_cases():
    return {
        "torch": torch.__version__,
        "rates": RATES,
        "start": {name: start_values(name) for name in SIZES},
        "gradients": [{name: gradient(name, step) for name in SIZES} for step in range(STEPS)],
        "cases": [sgd_case(momentum, nesterov, weight_decay, everywhere)
                  for momentum, nesterov in ((0, False), (0.9, False), (0.9, True))
                  for weight_decay, everywhere in ((0, False), (0.05, False), (0.05, True))],
    }


# The other optimizers. A case has the program's keys.
ZERO_GRADIENT = {"fc.weight": 3}  # parameter -> the step at which its whole gradient is 0
WRITTEN = (0, 1, 4, 11)  # steps after which numbers are written
EVERYWHERE = "weight_decay_on_norm_and_bias"


def optimizer_gradient(name, step):
    values = numpy.array(gradient(name, step))
    return 0 * values if ZERO_GRADIENT.get(name) == step else values


def optimizer_start(case, name):
    return [0.0] * SIZES[name] if case.get("zero_start") == name else start_values(name)


def decay_of(case, name):
    return case["weight_decay"] if case.get(EVERYWHERE, False) or name in WEIGHTS else 0


def torch_steps(case):
    """Yields after each step: parameters by name, states by name."""
    betas = (case.get("beta1", 0.9), case.get("beta2", 0.999))
    kinds = {
        "adam": (torch.optim.Adam, {"betas": betas, "eps": case.get("epsilon", 1e-8)},
                 ("exp_avg", "exp_avg_sq")),
        "adamw": (torch.optim.AdamW, {"betas": betas, "eps": case.get("epsilon", 1e-8)},
                  ("exp_avg", "exp_avg_sq")),
        "adagrad": (torch.optim.Adagrad, {"eps": case.get("epsilon", 1e-10)}, ("sum",)),
    }
    make, settings, kept = kinds[case["optimizer"]]
    tensors = {name: torch.tensor(optimizer_start(case, name), dtype=torch.float64)
               for name in SIZES}
    optimizer = make([{"params": [tensor], "weight_decay": decay_of(case, name)}
                      for name, tensor in tensors.items()], lr=1, **settings)
    for step, rate in enumerate(RATES):
        for name, tensor in tensors.items():
            tensor.grad = torch.tensor(optimizer_gradient(name, step))
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        yield ({name: tensor.tolist() for name, tensor in tensors.items()},
               [{name: optimizer.state[tensor][key].tolist() for name, tensor in tensors.items()}
                for key in kept])


def norm_ratio(weights, other):
    """|weights| / |other|; None if either norm is 0."""
    over, under = numpy.linalg.norm(weights), numpy.linalg.norm(other)
    return over / under if over > 0 and under > 0 else None


def momentum_update(case, name, weights, slope, states, rate):
    """The update of SGD or LARS."""
    decay = decay_of(case, name)
    ratio = 1
    if case["optimizer"] == "lars" and name in WEIGHTS and norm_ratio(weights, slope) is not None:
        over, under = numpy.linalg.norm(weights), numpy.linalg.norm(slope)
        ratio = case["trust_coefficient"] * over / (under + decay * over + case.get("epsilon", 0))
    corrected = case.get("momentum_correction", case["optimizer"] == "sgd")
    inside, outside = (1, rate) if corrected else (rate, 1)
    share = inside * ratio * (slope + decay * weights)
    states[0][:] = case["momentum"] * states[0] + share
    update = share + case["momentum"] * states[0] if case.get("nesterov") else states[0]
    return outside * update


def lamb_update(case, name, weights, slope, states, rate, step):
    beta1, beta2 = case.get("beta1", 0.9), case.get("beta2", 0.999)
    states[0][:] = beta1 * states[0] + (1 - beta1) * slope
    states[1][:] = beta2 * states[1] + (1 - beta2) * slope ** 2
    mean = states[0] / (1 - beta1 ** (step + 1))
    square = states[1] / (1 - beta2 ** (step + 1))
    update = mean / (numpy.sqrt(square) + case.get("epsilon", 1e-6)) + decay_of(case, name) * weights
    ratio = norm_ratio(weights, update) if name in WEIGHTS else None
    return rate * (1 if ratio is None else ratio) * update


def numpy_steps(case):
    count = 2 if case["optimizer"] == "lamb" else 1
    weights = {name: numpy.array(optimizer_start(case, name)) for name in SIZES}
    states = {name: [numpy.zeros(SIZES[name]) for _ in range(count)] for name in SIZES}
    for step, rate in enumerate(RATES):
        for name in SIZES:
            slope = optimizer_gradient(name, step)
            if case["optimizer"] == "lamb":
                update = lamb_update(case, name, weights[name], slope, states[name], rate, step)
            else:
                update = momentum_update(case, name, weights[name], slope, states[name], rate)
            weights[name] = weights[name] - update
        yield ({name: value.tolist() for name, value in weights.items()},
               [{name: states[name][index].tolist() for name in SIZES} for index in range(count)])


def with_steps(case):
    has_torch = case["optimizer"] in ("adam", "adamw", "adagrad")
    steps = list(torch_steps(case) if has_torch else numpy_steps(case))
    return {"settings": case, "start": {name: optimizer_start(case, name) for name in SIZES},
            "after": [{"step": step, "parameters": steps[step][0], "states": steps[step][1]}
                      for step in WRITTEN]}


def optimizer_cases():
    plain, decay = {"weight_decay": 0}, {"weight_decay": 0.05}
    everywhere = {**decay, EVERYWHERE: True}
    betas = {"beta1": 0.5, "beta2": 0.75, "epsilon": 0.125}
    momentum = {"momentum": 0.9}
    nesterov = {**momentum, "nesterov": True}
    lars = {"trust_coefficient": 0.25}
    cases = [{"optimizer": optimizer, **settings, **how}
             for optimizer, hows in (
                 ("sgd", [{**momentum, "momentum_correction": False},
                          {**nesterov, "momentum_correction": False}]),
                 ("lars", [{**lars, **momentum}, {**lars, **nesterov},
                           {**lars, **momentum, "momentum_correction": True, "epsilon": 0.5},
                           {**lars, **nesterov, "momentum_correction": True}]),
                 ("lamb", [{}, betas]), ("adam", [{}, betas]), ("adamw", [{}, betas]),
                 ("adagrad", [{}, {"epsilon": 0.125}]))
             for how in hows for settings in (plain, decay, everywhere)]
    cases += [{"optimizer": "lars", **decay, **lars, **momentum, "zero_start": "conv.weight"},
              {"optimizer": "lamb", **decay, "zero_start": "conv.weight"}]
    return {"torch": torch.__version__, "numpy": numpy.__version__, "rates": RATES,
            "gradients": [{name: optimizer_gradient(name, step).tolist() for name in SIZES}
                          for step in range(STEPS)],
            "cases": [with_steps(case) for case in cases]}


# Schedules. A case has the program's keys; peak and final rate are scaled by batch_size /
# learning_rate_batch = 2.
SCALE = 2
BASE = {"learning_rate": 0.1, "final_learning_rate": 0, "warmup_epochs": 0, "warmup_start": 0,
        "epochs": 6, "steps_per_epoch": 5, "schedule_epochs": [], "schedule_factor": 0.1,
        "schedule_power": 2}


def schedule_cases():
    """Each schedule without and with warm-ups of two epochs, of part of an epoch and of one step."""
    warmups = ({}, {"warmup_epochs": 2}, {"warmup_epochs": 0.6, "warmup_start": 0.25},
               {"warmup_epochs": 0.2, "warmup_start": 0.5})
    schedules = (
        {"schedule": "constant"},
        {"schedule": "step", "schedule_epochs": [3, 5]},
        {"schedule": "step", "schedule_epochs": [2, 3, 4], "schedule_factor": 0.3},
        {"schedule": "cosine"},
        {"schedule": "cosine", "final_learning_rate": 0.01},
        {"schedule": "polynomial", "schedule_power": 1},
        {"schedule": "polynomial", "schedule_power": 2},
        {"schedule": "polynomial", "schedule_power": 0.9, "final_learning_rate": 0.02},
    )
    return [{**BASE, **schedule, **warmup} for schedule in schedules for warmup in warmups]


def warmup_steps(case):
    return round(case["warmup_epochs"] * case["steps_per_epoch"])


def pytorch_after(optimizer, case, first, last):
    """PyTorch's scheduler for the steps from `first` on; it counts `first` as 0."""
    kind, power = case["schedule"], case["schedule_power"]
    peak, final = SCALE * case["learning_rate"], SCALE * case["final_learning_rate"]
    if kind == "constant":
        return lr_scheduler.ConstantLR(optimizer, factor=1, total_iters=0)
    if kind == "step":
        at = [epoch * case["steps_per_epoch"] - first for epoch in case["schedule_epochs"]]
        if min(at) > 0:
            return lr_scheduler.MultiStepLR(optimizer, at, gamma=case["schedule_factor"])
        return lr_scheduler.LambdaLR(  # MultiStepLR ignores a milestone at its own start
            optimizer, lambda k: case["schedule_factor"] ** sum(k >= a for a in at))
    if kind == "cosine":
        return lr_scheduler.CosineAnnealingLR(optimizer, last - first, eta_min=final)
    if final == 0:
        return lr_scheduler.PolynomialLR(optimizer, last - first, power=power)
    return lr_scheduler.LambdaLR(  # PolynomialLR ends at 0 only
        optimizer, lambda k: (final + (peak - final) * (1 - k / (last - first)) ** power) / peak)


def pytorch_warmup(optimizer, case, first):
    """LinearLR reaches its end after total_iters steps; the program, in the last step of the warm-up."""
    start = case["warmup_start"] + (1 - case["warmup_start"]) / first
    passed = sum(first >= e * case["steps_per_epoch"] for e in case["schedule_epochs"])
    if passed == 0:
        return lr_scheduler.LinearLR(optimizer, start, 1, total_iters=first - 1)
    # The program rises to the rate after the warm-up, which schedule_epochs has already reduced.
    # LinearLR can only rise to the peak.
    later = case["schedule_factor"] ** passed
    return lr_scheduler.LambdaLR(
        optimizer, lambda k: later * (start + (1 - start) * k / max(first - 1, 1)))


def pytorch_rates(case):
    first, last = warmup_steps(case), case["epochs"] * case["steps_per_epoch"]
    parameter = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([parameter], lr=SCALE * case["learning_rate"])
    parts = [pytorch_warmup(optimizer, case, first)] if first > 0 else []
    parts.append(pytorch_after(optimizer, case, first, last))
    scheduler = lr_scheduler.SequentialLR(optimizer, parts, [first] * (len(parts) - 1))
    rates = []
    for _ in range(last):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return rates


def decimal_cosine(x):
    total = term = decimal.Decimal(1)
    for k in range(1, 60):
        term *= -x * x / ((2 * k - 1) * (2 * k))
        total += term
    return total


PI = decimal.Decimal("3.14159265358979323846264338327950288419716939937510582097494459")


def closed_form_rate(case, step):
    """The formula as docs/CONFIG.md and training/schedule.hpp state it."""
    exact = {key: decimal.Decimal(str(value)) for key, value in case.items()
             if isinstance(value, (int, float))}
    first, last = warmup_steps(case), case["epochs"] * case["steps_per_epoch"]
    if step < first:
        share = decimal.Decimal(step + 1) / first
        return closed_form_rate(case, first) * (
            exact["warmup_start"] + (1 - exact["warmup_start"]) * share)
    peak, final = SCALE * exact["learning_rate"], SCALE * exact["final_learning_rate"]
    done = decimal.Decimal(step - first) / (last - first)
    if case["schedule"] == "constant":
        return peak
    if case["schedule"] == "step":
        passed = sum(step >= e * case["steps_per_epoch"] for e in case["schedule_epochs"])
        return peak * exact["schedule_factor"] ** passed
    if case["schedule"] == "cosine":
        return final + (peak - final) * (1 + decimal_cosine(PI * done)) / 2
    return final + (peak - final) * (1 - done) ** exact["schedule_power"]


def with_rates(case):
    steps = case["epochs"] * case["steps_per_epoch"]
    return {**case, "torch_rates": pytorch_rates(case),
            "closed_form_rates": [float(closed_form_rate(case, step)) for step in range(steps)]}


def write(path, content):
    """One line for each list of numbers, so that a change shows where it is."""
    path.write_text(json.dumps(content, separators=(",", ":")).replace("],", "],\n") + "\n")


def main():
    decimal.getcontext().prec = 60
    default = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "reference"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "sgd.json", sgd_cases())
    write(folder / "optimizers.json", optimizer_cases())
    write(folder / "schedule.json", {"torch": torch.__version__, "batch_size": 512,
                                     "learning_rate_batch": 512 // SCALE,
                                     "cases": [with_rates(case) for case in schedule_cases()]})


if __name__ == "__main__":
    main()
