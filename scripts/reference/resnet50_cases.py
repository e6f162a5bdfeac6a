#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/reference/resnet50_*.safetensors and resnet50.json: the whole ResNet-50, v1 and
v1.5, 1000 classes, by torchvision and PyTorch in float64.

Weights, pixels and labels are formulas of integer hashes (`parameter`, `batch`), which
tests/parity/formula.hpp computes again to the same bits. There are two kinds of weights:

* "ordinary": as at the start of a training run. A few values before a ReLU are so near to zero that
  rounding decides whether their gradient passes. Therefore even PyTorch's fp32 gradients differ
  from float64 by up to 1 %. resnet50.json has PyTorch's distances.
* "open": shifts of +6 or -6, so that the ReLU of a channel passes all of its values or none. The
  network is smooth there, and its gradients are comparable to the accuracy of fp32. The script
  checks that no value before a ReLU is near to zero.

A tensor of over 128 elements is stored as a count sketch (`fingerprint`): element i is added with
the sign s(i) to the bucket b(i) of 128, s and b from an integer hash. The sketch of a difference is
the difference of the sketches, and its squared length is an unbiased estimate of the difference's
squared length with the relative deviation sqrt(2 / 128) = 1/8. Every fingerprint begins with the
tensor's exact length.

resnet50_<version>_open.safetensors has one gradient, the state after three steps of SGD, and
the network's predictions for a batch after them. resnet50_<version>_ordinary.safetensors has one
gradient for pictures of odd size, resnet50.json the losses of thirty steps in float64, fp32 and bf16.

usage: resnet50_cases.py [DIRECTORY]     (default: tests/data/reference of this repository)
Needs PyTorch, torchvision, NumPy and safetensors; the files name the versions that wrote them. Takes
about ten minutes on two idle cores. The number of cores may change the last bits.
"""
import json
import math
import pathlib
import sys

import numpy
import safetensors.numpy
import torch
import torchvision
from torchvision.models.resnet import Bottleneck

BATCH, CLASSES, BUCKETS = 8, 1000, 128
BATCHES = 3  # batches that a training run repeats
STEPS, WARMUP = 30, 6
PEAK_RATES = {"open": 0.03, "ordinary": 0.002}
MOMENTUM, DECAY, SMOOTHING = 0.9, 1e-4, 0.1
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SHIFT = 6  # of the open kind; each of n normalized values is below sqrt(n)
VERSIONS = ("v1", "v1_5")


def hashes(name, count):
    """One 32-bit number for each of 0 ... count - 1: the finalizer of MurmurHash3 on the index,
    spread by the golden ratio and moved by the FNV-1a hash of `name`."""
    start = 0x811C9DC5
    for byte in name.encode():
        start = (start ^ byte) * 0x01000193 & 0xFFFFFFFF
    word = numpy.arange(count, dtype=numpy.uint32) * numpy.uint32(0x9E3779B9) + numpy.uint32(start)
    word = (word ^ word >> 16) * numpy.uint32(0x85EBCA6B)
    word = (word ^ word >> 13) * numpy.uint32(0xC2B2AE35)
    return word ^ word >> 16


def uniform(name, count):
    """Multiples of 2^-23 in [-1, 1)."""
    return (hashes(name, count) >> 8).astype(numpy.float64) * 2.0**-23 - 1


def size_of_norm(name, kind):
    """The factor of scales and shifts. Small branches keep an ordinary network from amplifying its
    rounding. Small features keep the constant part of an open network from dominating the
    loss."""
    size = 0.25 if ".bn3." in name else 1
    feature = name.startswith("layer4.") and (".bn3." in name or ".downsample." in name)
    return size / 32 if kind == "open" and feature else size


def parameter(name, shape, kind):
    """fp32 values of torchvision's parameter `name`, by the index of the element in its order."""
    count = math.prod(shape)
    u = uniform(name, count)
    if len(shape) == 4:
        values = u * math.sqrt(6 / (shape[0] * shape[2] * shape[3]))  # variance 2 / fan out
    elif name == "fc.weight":
        values = u * math.sqrt((192 if kind == "open" else 3) / shape[1])
    elif name == "fc.bias":
        values = u / 8
    elif name.endswith(".weight"):
        values = (1 + u / 8) * size_of_norm(name, kind)
    else:
        sign = numpy.where(numpy.arange(count) % 4 == 3, -1, 1)  # every fourth channel passes nothing
        values = (u / 8 + (SHIFT * sign if kind == "open" else 0)) * size_of_norm(name, kind)
    return torch.from_numpy(values.astype(numpy.float32).reshape(shape))


def batch(number, size):
    """uint8 pictures (N, H, W, C) of squares of 8 pixels with noise, and labels (N)."""
    squares = -(-size // 8)
    coarse = hashes(f"squares {number}", BATCH * squares**2 * 3) >> 24
    coarse = coarse.reshape(BATCH, squares, squares, 3).repeat(8, 1).repeat(8, 2)
    grain = (hashes(f"grain {number}", BATCH * size**2 * 3) >> 24).reshape(BATCH, size, size, 3)
    pictures = (3 * coarse[:, :size, :size] + grain >> 2).astype(numpy.uint8)
    labels = hashes(f"labels {number}", BATCH) % CLASSES
    return torch.from_numpy(pictures), torch.from_numpy(labels.astype(numpy.int64))


def network_input(pictures, dtype):
    mean, deviation = (torch.tensor(values, dtype=torch.float64) for values in (MEAN, DEVIATION))
    return ((pictures.double() / 255 - mean) / deviation).permute(0, 3, 1, 2).contiguous().to(dtype)


def make_network(version, kind, dtype):
    network = torchvision.models.resnet50(num_classes=CLASSES)
    for module in network.modules():
        if version == "v1" and isinstance(module, Bottleneck):
            module.conv1.stride, module.conv2.stride = module.conv2.stride, module.conv1.stride
    with torch.no_grad():
        for name, value in network.named_parameters():
            value.copy_(parameter(name, tuple(value.shape), kind))
    return network.to(dtype).train()


class Training:
    """A network, its optimizer and a precision: float64, float32 or bfloat16 (autocast)."""

    def __init__(self, version, kind, precision, size=64):
        self.dtype = torch.float64 if precision == "float64" else torch.float32
        self.autocast = precision == "bfloat16"
        self.kind, self.size = kind, size
        self.network = make_network(version, kind, self.dtype)
        parameters = list(self.network.parameters())
        groups = [{"params": [p for p in parameters if p.dim() > 1], "weight_decay": DECAY},
                  {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0}]
        self.optimizer = torch.optim.SGD(groups, lr=0.0, momentum=MOMENTUM)

    def reject_values_near_zero(self):
        """Fails if a value before a ReLU is near zero in training."""
        def check(relu, inputs):
            assert not relu.training or inputs[0].abs().min() > 1e-3, "a value is near zero"
        for module in self.network.modules():
            if isinstance(module, torch.nn.ReLU):
                module.register_forward_pre_hook(check)

    def logits(self, pictures):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.autocast):
            return self.network(network_input(pictures, self.dtype)).to(self.dtype)

    def backward(self, number):
        """Logits and losses of a batch; the gradient of the mean loss is left in the parameters."""
        pictures, labels = batch(number, self.size)
        logits = self.logits(pictures)
        losses = torch.nn.functional.cross_entropy(logits, labels, label_smoothing=SMOOTHING,
                                                   reduction="none")
        self.optimizer.zero_grad()
        losses.mean().backward()
        return logits.detach().double().numpy(), losses.detach().double().numpy()

    def step(self, number):
        """Trains one step; returns the mean loss before its update."""
        logits, losses = self.backward(number % BATCHES)
        for group in self.optimizer.param_groups:
            group["lr"] = rate(number, PEAK_RATES[self.kind])
        self.optimizer.step()
        return losses.mean()

    def inference_logits(self, number):
        self.network.eval()
        with torch.no_grad():
            return self.logits(batch(number, self.size)[0]).double().numpy()

    def gradients(self):
        return {name: array(value.grad) for name, value in self.network.named_parameters()}

    def parameters(self):
        return {name: array(value) for name, value in self.network.named_parameters()}

    def velocities(self):
        return {name: array(self.optimizer.state[value]["momentum_buffer"])
                for name, value in self.network.named_parameters()}

    def statistics(self):
        return {name: array(value) for name, value in self.network.named_buffers()
                if not name.endswith("num_batches_tracked")}


def array(tensor):
    return tensor.detach().double().numpy().ravel().copy()


def rate(step, peak):
    """Linear warm-up to `peak`, then half a cosine down to 0."""
    if step < WARMUP:
        return peak * (step + 1) / WARMUP
    return peak * (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP))) / 2


def fingerprint(values):
    """Length, then the elements themselves or their sketch."""
    length = numpy.sqrt(numpy.square(values).sum())
    if values.size > BUCKETS:
        word = hashes("sketch", values.size)
        signed = numpy.where(word & 128, -values, values)
        values = numpy.bincount(word % BUCKETS, weights=signed, minlength=BUCKETS)
    return numpy.concatenate([[length], values]).astype(numpy.float32)


def centred(logits):
    """The logits minus the mean of their row, which a softmax ignores."""
    return (logits - logits.mean(axis=1, keepdims=True)).astype(numpy.float32)


def relative(got, want):
    return float(numpy.linalg.norm(got - want) / numpy.linalg.norm(want))


def farthest_tensor(got, want):
    """The tensor farthest from its reference: distance / length, and name. A shift has no gradient if
    the next normalization removes it, so a shift's length is at least that of its scale's
    gradient."""
    def length(name):
        scale = name if name == "fc.bias" else name.replace(".bias", ".weight")
        return max(numpy.linalg.norm(want[name]), numpy.linalg.norm(want[scale]))
    return max((float(numpy.linalg.norm(got[name] - want[name]) / length(name)), name)
               for name in want)


def distances(version, kind, size, exact):
    """The distances of PyTorch's own fp32 and bf16 from float64 in one gradient."""
    result = {}
    for precision in ("float32", "bfloat16"):
        training = Training(version, kind, precision, size)
        logits, losses = training.backward(0)
        gradient, name = farthest_tensor(training.gradients(), exact["gradients"])
        result[precision] = {"losses": relative(losses, exact["losses"]),
                             "logits": relative(centred(logits), centred(exact["logits"])),
                             "gradients": gradient, "worst": name}
    return result


def one_gradient(training):
    """The tensors of a file, and the same values without fingerprints."""
    logits, losses = training.backward(0)
    exact = {"logits": logits, "losses": losses, "gradients": training.gradients()}
    tensors = {f"gradient/{name}": fingerprint(value) for name, value in exact["gradients"].items()}
    return {**tensors, "logits": centred(logits), "losses": losses}, exact


def three_steps(training):
    start = training.parameters()
    losses = numpy.array([training.step(number) for number in range(BATCHES)])
    moved = {f"moved/{name}": fingerprint(value - start[name])
             for name, value in training.parameters().items()}
    statistics = {f"statistics/{name}": fingerprint(value)
                  for name, value in training.statistics().items()}
    velocities = {f"velocity/{name}": fingerprint(value)
                  for name, value in training.velocities().items()}
    return {**moved, **velocities, **statistics, "step_losses": losses,
            "inference_logits": centred(training.inference_logits(BATCHES))}


def write_case(folder, version, kind, size):
    training = Training(version, kind, "float64", size)
    if kind == "open":
        training.reject_values_near_zero()
    tensors, exact = one_gradient(training)
    if kind == "open":
        training = Training(version, kind, "float64", size)
        training.reject_values_near_zero()
        tensors |= three_steps(training)
    path = folder / f"resnet50_{version}_{kind}.safetensors"
    safetensors.numpy.save_file(tensors, path, {"torch": torch.__version__})
    path.chmod(0o644)
    return distances(version, kind, size, exact)


def curve(kind, precision):
    training = Training("v1_5", kind, precision)
    return [float(training.step(number)) for number in range(STEPS)]


def main():
    default = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "reference"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    folder.mkdir(parents=True, exist_ok=True)
    versions = {module.__name__: module.__version__ for module in (torch, torchvision, numpy)}
    cases = {f"{version}_{kind}": write_case(folder, version, kind, size)
             for version in VERSIONS for kind, size in (("open", 64), ("ordinary", 75))}
    curves = {kind: {precision: curve(kind, precision)
                     for precision in ("float64", "float32", "bfloat16")} for kind in PEAK_RATES}
    text = json.dumps({"written_with": versions, "distances_of_pytorch": cases, "curves": curves})
    (folder / "resnet50.json").write_text(text.replace("], ", "],\n").replace("}, ", "},\n") + "\n")


if __name__ == "__main__":
    main()
