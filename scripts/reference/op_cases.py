#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/reference/ops_convolution.safetensors, ops_batch_norm.safetensors and
ops_others.safetensors: every operation, forward and backward, by PyTorch in float64.

The file's metadata has only one entry, because the writer orders several at random: "reference", a
JSON object with the versions that wrote the file and "cases". A case NAME has the operation and its
settings there, and the tensors NAME/ROLE. Inputs are input.N, parameter.N, output_gradient.N,
running_mean, running_variance. Results are expected.output, expected.input_gradient.N,
expected.parameter_gradient.N, expected.losses, expected.running_mean, expected.running_variance.
Images are (N, H, W, C) and filters (K, R, S, C): PyTorch's tensors with channels last.

All inputs are exact in bf16, so that one case serves every precision. Every tensor is
stored in the smallest of bf16, fp32 and fp64 that represents it exactly.

usage: op_cases.py [DIRECTORY]            (default: tests/data/reference of this repository)
Needs PyTorch, torchvision, NumPy and safetensors; the files name the versions that wrote them.
"""
import json
import pathlib
import sys

import numpy
import safetensors.torch
import torch
import torch.nn.functional as F
import torchvision
from torchvision.transforms.v2 import functional as pictures

STEM_MEAN, STEM_DEVIATION = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


class Numbers:
    """Pseudo-random numbers that are exact in bf16: multiples of 1/64 below 4. Philox's raw output is
    the same in every version of NumPy."""

    def __init__(self, stream):
        self.generator = numpy.random.Philox(key=stream)

    def integers(self, shape, below):
        raw = self.generator.random_raw(int(numpy.prod(shape))) >> numpy.uint64(32)
        return torch.from_numpy((raw % numpy.uint64(below)).astype(numpy.int64)).reshape(shape)

    def uniform(self, shape, largest=255, unit=1 / 64):
        """Multiples of `unit` in [-largest, largest] units."""
        return (self.integers(shape, 2 * largest + 1) - largest).double() * unit


class Cases:
    """The cases of one file."""

    def __init__(self):
        self.tensors, self.settings = {}, {}

    def add(self, name, settings, given, expected):
        self.settings[name] = settings
        for role, tensor in given.items():
            assert tensor.equal(tensor.bfloat16().to(tensor.dtype)), f"{name}/{role}: not in bf16"
            self.tensors[f"{name}/{role}"] = smallest(canonical(tensor))
        for role, tensor in expected.items():
            self.tensors[f"{name}/expected.{role}"] = smallest(canonical(tensor.detach()))

    def write(self, path):
        versions = {"torch": torch.__version__, "torchvision": torchvision.__version__,
                    "numpy": numpy.__version__}
        reference = {"written_with": versions, "cases": self.settings}
        safetensors.torch.save_file(self.tensors, path, {"reference": json.dumps(reference)})


def canonical(tensor):
    """(N, C, H, W) or (K, C, R, S) with channels last."""
    return (tensor.permute(0, 2, 3, 1) if tensor.dim() == 4 else tensor).contiguous()


def smallest(tensor):
    if tensor.dtype != torch.float64:
        return tensor
    fitting = [dtype for dtype in (torch.bfloat16, torch.float32, torch.float64)
               if tensor.to(dtype).double().equal(tensor)]
    return tensor.to(fitting[0])


def numbered(role, tensors):
    return {f"{role}.{i}": tensor for i, tensor in enumerate(tensors)}


def leaves(*tensors):
    return [tensor.clone().requires_grad_() for tensor in tensors]


def add_differentiated(cases, name, settings, function, inputs, parameters=(), numbers=None):
    """A case of y = function(*inputs, *parameters) with the gradients of sum(y * dy)."""
    inputs, parameters = leaves(*inputs), leaves(*parameters)
    output = function(*inputs, *parameters)
    gradient = numbers.uniform(output.shape)
    found = torch.autograd.grad(output, [*inputs, *parameters], gradient)
    given = {**numbered("input", inputs), **numbered("parameter", parameters),
             "output_gradient.0": gradient}
    cases.add(name, settings, {role: tensor.detach() for role, tensor in given.items()},
              {"output": output, **numbered("input_gradient", found[:len(inputs)]),
               **numbered("parameter_gradient", found[len(inputs):])})


# (N, H, W, C), filters, kernel, stride, padding
CONVOLUTIONS = [
    ((2, 5, 3, 16), 32, 1, 1, 0),
    ((1, 4, 4, 64), 64, 1, 1, 0),
    ((2, 1, 1, 24), 5, 1, 1, 0),
    ((2, 2, 2, 3), 5, 1, 2, 0),
    ((2, 5, 7, 16), 16, 1, 2, 0),
    ((2, 6, 4, 5), 24, 1, 2, 0),
    ((2, 7, 5, 16), 16, 3, 1, 1),
    ((1, 3, 3, 64), 16, 3, 1, 1),
    ((2, 5, 4, 3), 5, 3, 1, 1),
    ((1, 5, 4, 24), 24, 3, 1, 1),
    ((2, 1, 1, 16), 16, 3, 1, 1),
    ((2, 2, 2, 24), 5, 3, 1, 1),
    ((2, 6, 5, 16), 16, 3, 1, 0),
    ((1, 4, 5, 16), 16, 3, 1, 2),
    ((2, 5, 5, 32), 16, 3, 2, 1),
    ((2, 6, 4, 16), 32, 3, 2, 1),
    ((2, 5, 6, 5), 3, 3, 2, 0),
    ((2, 2, 2, 16), 16, 3, 2, 1),
    ((2, 9, 8, 3), 16, 7, 2, 3),
    ((1, 8, 9, 5), 5, 7, 2, 3),
    ((1, 2, 2, 3), 16, 7, 2, 3),
    ((1, 1, 1, 16), 16, 7, 1, 3),
    ((1, 7, 7, 16), 5, 7, 1, 0),
    ((1, 10, 7, 24), 3, 7, 1, 2),
]


def convolution_cases():
    cases = Cases()
    for stream, ((n, h, w, c), filters, kernel, stride, padding) in enumerate(CONVOLUTIONS, 100):
        numbers = Numbers(stream)
        add_differentiated(
            cases, f"{kernel}x{kernel} of {n}x{h}x{w}x{c}, stride {stride}, padding {padding}",
            {"operation": "convolution", "stride": stride, "padding": padding},
            lambda x, filters, stride=stride, padding=padding:
                F.conv2d(x, filters, stride=stride, padding=padding),
            [numbers.uniform((n, c, h, w))], [numbers.uniform((filters, c, kernel, kernel))],
            numbers)
    return cases


# (N, H, W, C), then the settings that differ from the defaults
BATCH_NORMS = [
    ((3, 4, 5, 16), {}),
    ((2, 3, 7, 3), {}),
    ((2, 5, 3, 5), {"momentum": 0.25, "epsilon": 1e-3}),
    ((2, 3, 3, 64), {"momentum": 1}),
    ((2, 3, 3, 16), {"epsilon": 0.5}),
    ((2, 1, 1, 16), {"epsilon": 0.5}),
    ((5, 1, 1, 24), {}),
    ((6, 3, 4, 16), {"statistics_samples": 2}),
    ((6, 2, 3, 5), {"statistics_samples": 3, "relu": True}),
    ((4, 3, 3, 32), {"statistics_samples": 1, "add": True, "relu": True, "momentum": 0.25}),
    ((4, 2, 3, 24), {"statistics_samples": 4}),
    ((3, 4, 3, 16), {"relu": True}),
    ((4, 1, 1, 32), {"relu": True}),
    ((2, 4, 3, 24), {"relu": True, "epsilon": 0.5}),
    ((3, 4, 3, 16), {"add": True, "relu": True}),
    ((2, 5, 5, 3), {"add": True, "relu": True, "epsilon": 1e-3}),
    ((4, 1, 1, 24), {"add": True, "relu": True}),
    ((2, 3, 4, 16), {"training": False}),
    ((2, 3, 4, 5), {"training": False, "epsilon": 0.5}),
    ((2, 3, 4, 24), {"training": False, "relu": True}),
    ((2, 3, 4, 16), {"training": False, "add": True, "relu": True}),
    ((6, 2, 2, 32), {"training": False, "statistics_samples": 2, "relu": True}),
]
BATCH_NORM_DEFAULTS = {"epsilon": 1e-5, "momentum": 0.1, "statistics_samples": 0, "add": False,
                       "relu": False, "training": True}


def normalized(x, weight, bias, buffers, settings):
    """torch.nn.BatchNorm2d on each span of samples. All spans start with the same buffers, and their
    new buffers are averaged. Returns the output and the new buffers."""
    span = settings["statistics_samples"] if settings["training"] else 0
    outputs, spans = [], []
    for part in x.split(span or len(x)):
        after = [buffer.clone() for buffer in buffers]
        outputs.append(F.batch_norm(part, *after, weight, bias, settings["training"],
                                    settings["momentum"], settings["epsilon"]))
        spans.append(after)
    return torch.cat(outputs), [torch.stack(after).mean(0) for after in zip(*spans)]


def residual_for(y, numbers):
    """A residual that keeps the sum away from 0, so that rounding cannot change the ReLU's mask."""
    residual = numbers.uniform(y.shape, largest=127)
    distance = y + residual
    return torch.where(distance.abs() < 1 / 16, residual + distance.sign() / 8, residual)


def batch_norm_case(cases, stream, shape, settings):
    n, h, w, c = shape
    numbers = Numbers(stream)
    x = numbers.uniform((n, c, h, w)) + 0.5 * numbers.uniform((1, c, 1, 1), largest=2, unit=1)
    x = x.bfloat16().double()
    weight, bias = 1 + numbers.uniform((c,), largest=63, unit=1 / 128), numbers.uniform((c,), largest=64)
    if settings["relu"]:
        weight[0] = bias[0] = 0  # channel 0 has a scale of 0, so that all inputs of its ReLU are 0
    buffers = [numbers.uniform((c,)), numbers.integers((c,), 200).double() / 64 + 0.25]
    residual = []
    if settings["add"]:
        residual = [residual_for(normalized(x, weight, bias, buffers, settings)[0], numbers)]
    inputs, parameters = leaves(x, *residual), leaves(weight, bias)
    output, after = normalized(inputs[0], *parameters, buffers, settings)
    if settings["add"]:
        output = output + inputs[1]
    if settings["relu"]:
        assert output[output != 0].abs().min() > 1e-5, f"{shape}: a ReLU depends on rounding"
        output = F.relu(output)
    given = {**numbered("input", inputs), **numbered("parameter", parameters),
             "running_mean": buffers[0], "running_variance": buffers[1]}
    expected = {"output": output, "running_mean": after[0], "running_variance": after[1]}
    if settings["training"]:
        given["output_gradient.0"] = numbers.uniform(output.shape)
        found = torch.autograd.grad(output, [*inputs, *parameters], given["output_gradient.0"])
        expected.update({**numbered("input_gradient", found[:-2]),
                         **numbered("parameter_gradient", found[-2:])})
    changed = [f"{key} {value}" for key, value in settings.items()
               if value != BATCH_NORM_DEFAULTS[key]]
    cases.add(" ".join(["x".join(map(str, shape)), *changed]),
              {"operation": "batch_norm", **settings},
              {role: tensor.detach() for role, tensor in given.items()}, expected)


def batch_norm_cases():
    cases = Cases()
    for stream, (shape, settings) in enumerate(BATCH_NORMS, 200):
        batch_norm_case(cases, stream, shape, {**BATCH_NORM_DEFAULTS, **settings})
    return cases


def add_elementwise(cases):
    for stream, (n, h, w, c) in enumerate([(1, 1, 1, 1), (2, 3, 4, 16), (2, 3, 3, 5),
                                           (1, 2, 7, 24)], 300):
        numbers, shape = Numbers(stream), (n, c, h, w)
        with_zeros = numbers.uniform(shape, largest=2, unit=1)
        add_differentiated(cases, f"relu of {n}x{h}x{w}x{c}", {"operation": "relu"}, F.relu,
                           [numbers.uniform(shape)], numbers=numbers)
        add_differentiated(cases, f"relu of {n}x{h}x{w}x{c} with zeros", {"operation": "relu"},
                           F.relu, [with_zeros], numbers=numbers)
        add_differentiated(cases, f"add of {n}x{h}x{w}x{c}", {"operation": "add"}, torch.add,
                           [numbers.uniform(shape), numbers.uniform(shape)], numbers=numbers)


# (N, H, W, C), kernel, stride, padding
MAX_POOLS = [
    ((2, 8, 7, 16), 3, 2, 1),
    ((2, 7, 8, 3), 3, 2, 1),
    ((1, 5, 5, 24), 3, 2, 1),
    ((2, 1, 1, 16), 3, 2, 1),
    ((2, 2, 2, 5), 3, 2, 1),
    ((2, 6, 4, 16), 2, 2, 0),
    ((2, 5, 5, 32), 3, 1, 0),
]


def add_pooling(cases):
    for stream, ((n, h, w, c), kernel, stride, padding) in enumerate(MAX_POOLS, 400):
        numbers, shape = Numbers(stream), (n, c, h, w)
        settings = {"operation": "max_pool", "kernel": kernel, "stride": stride,
                    "padding": padding}
        images = {"": numbers.uniform(shape), " with ties": numbers.integers(shape, 3).double(),
                  " below 0": -1 - numbers.integers(shape, 190).double() / 64}
        for kind, image in images.items():
            add_differentiated(
                cases, f"max pool {kernel}x{kernel} stride {stride} of {n}x{h}x{w}x{c}{kind}",
                settings, lambda x, at=(kernel, stride, padding): F.max_pool2d(x, *at), [image],
                numbers=numbers)
    for stream, (n, h, w, c) in enumerate([(2, 7, 7, 16), (2, 1, 1, 32), (3, 2, 2, 5),
                                           (2, 5, 3, 24), (1, 4, 4, 3), (1, 3, 3, 64)], 500):
        numbers = Numbers(stream)
        add_differentiated(cases, f"global average pool of {n}x{h}x{w}x{c}",
                           {"operation": "global_average_pool"},
                           lambda x: F.adaptive_avg_pool2d(x, 1).flatten(1),
                           [numbers.uniform((n, c, h, w))], numbers=numbers)


def add_linear(cases):
    for stream, (n, columns, features) in enumerate([(4, 64, 10), (3, 33, 21), (1, 16, 1),
                                                     (5, 24, 3), (8, 32, 32)], 600):
        numbers = Numbers(stream)
        add_differentiated(cases, f"linear {n}x{columns} to {features}", {"operation": "linear"},
                           F.linear, [numbers.uniform((n, columns))],
                           [numbers.uniform((features, columns)), numbers.uniform((features,))],
                           numbers)


# rows, classes, label smoothing, loss scale, rows to ignore
LOSSES = [(4, 10, 0, 1, ()), (4, 10, 0.1, 1, ()), (5, 37, 0.1, 0.125, ()), (6, 3, 0, 1024, (0, 4)),
          (6, 16, 0.1, 0.25, (1, 5)), (2, 2, 0.1, 1, ()), (3, 5, 0.1, 1, (0, 1, 2))]


def add_losses(cases):
    for stream, (rows, classes, smoothing, scale, ignored) in enumerate(LOSSES, 700):
        numbers = Numbers(stream)
        logits = numbers.uniform((rows, classes))
        labels = numbers.integers((rows,), classes)
        labels[list(ignored)] = -1
        x, = leaves(logits)
        losses = F.cross_entropy(x, labels, ignore_index=-1, reduction="none",
                                 label_smoothing=smoothing)
        gradient, = torch.autograd.grad(losses.sum() * scale, x)
        name = f"cross-entropy of {rows}x{classes} smoothing {smoothing} ignored {len(ignored)}"
        cases.add(name, {"operation": "softmax_cross_entropy", "label_smoothing": smoothing,
                         "loss_scale": scale},
                  {"input.0": logits, "input.1": labels.int()},
                  {"output": F.softmax(x, 1), "losses": losses, "input_gradient.0": gradient})


def add_pixels(cases):
    """Every value of a pixel in every channel."""
    for channels in (1, 3, 16):
        # Odd multipliers give each channel another order of the 256 values.
        values = torch.stack([torch.arange(256) * (2 * c + 1) % 256 for c in range(channels)])
        pixels = values.reshape(1, channels, 16, 16).to(torch.uint8)
        mean = [STEM_MEAN[c % 3] + c // 3 / 32 for c in range(channels)]
        deviation = [STEM_DEVIATION[c % 3] + c // 3 / 32 for c in range(channels)]
        output = pictures.normalize(pictures.to_dtype(pixels, torch.float64, scale=True), mean,
                                    deviation)
        cases.add(f"pixels in {channels} channels",
                  {"operation": "input_normalize", "mean": mean, "standard_deviation": deviation},
                  {"input.0": pixels}, {"output": output})


def other_cases():
    cases = Cases()
    for add in (add_elementwise, add_pooling, add_linear, add_losses, add_pixels):
        add(cases)
    return cases


def main():
    default = pathlib.Path(__file__).parents[2] / "tests" / "data" / "reference"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    convolution_cases().write(folder / "ops_convolution.safetensors")
    batch_norm_cases().write(folder / "ops_batch_norm.safetensors")
    other_cases().write(folder / "ops_others.safetensors")


if __name__ == "__main__":
    main()
