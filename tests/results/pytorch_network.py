# SPDX-License-Identifier: Apache-2.0
"""Prints the logits of an exported network, computed by plain loops in place of PyTorch's layers.

usage: pytorch_network.py NETWORK WEIGHTS IMAGES

NETWORK and WEIGHTS are files of `hpcai500 export`; IMAGES is JSON of normalized images (N, C, H, W).
Fails if the names or shapes of the tensors differ.
"""
import json
import runpy
import struct
import sys
import types


class Module:
    """What the exported network uses of torch.nn.Module. An image is a list of channels of rows."""

    def __init__(self, **shapes):
        self.children, self.shapes, self.values = {}, shapes, {}

    def add_module(self, name, module):
        self.children[name] = module

    def named_children(self):
        return self.children.items()

    def __getattr__(self, name):
        return self.__dict__["children"][name]

    def get_submodule(self, path):
        name, _, rest = path.partition(".")
        return self.children[name].get_submodule(rest) if rest else self.children[name]

    def tensors(self, prefix=""):
        """{name: (module, name inside, shape)} of the state dict."""
        found = {prefix + name: (self, name, shape) for name, shape in self.shapes.items()}
        for name, child in self.children.items():
            found |= child.tensors(f"{prefix}{name}.")
        return found


class Conv2d(Module):
    def __init__(self, inputs, filters, kernel, stride, padding, bias):
        super().__init__(weight=[filters, inputs, kernel, kernel])
        self.kernel, self.stride, self.padding = kernel, stride, padding
        assert not bias

    def __call__(self, images):
        return [self.convolved(Padded(image, self.padding, 0.0)) for image in images]

    def convolved(self, image):
        size, weights = self.kernel, self.values["weight"]
        terms = size * size * len(image.channels)
        windows = [[image.window(row, column, size) for column in image.starts(1, size, self.stride)]
                   for row in image.starts(0, size, self.stride)]
        return [[[sum(map(float.__mul__, weights[first:first + terms], window)) for window in row]
                 for row in windows] for first in range(0, len(weights), terms)]


class Padded:
    def __init__(self, image, padding, value):
        width = len(image[0][0]) + 2 * padding
        rows, side = [[value] * width] * padding, [value] * padding
        self.channels = [rows + [side + row + side for row in channel] + rows for channel in image]

    def starts(self, axis, size, stride):
        length = len(self.channels[0][0] if axis else self.channels[0])
        return range(0, length - size + 1, stride)

    def window(self, row, column, size):
        return [value for channel in self.channels for line in channel[row:row + size]
                for value in line[column:column + size]]


class BatchNorm2d(Module):
    def __init__(self, channels, eps, momentum):
        rows = ("weight", "bias", "running_mean", "running_var")
        super().__init__(num_batches_tracked=[], **{row: [channels] for row in rows})
        self.eps = eps
        assert 0 < momentum <= 1

    def __call__(self, images):
        values = self.values
        scales = [gamma / (variance + self.eps) ** 0.5
                  for gamma, variance in zip(values["weight"], values["running_var"])]
        return [[[[(value - mean) * scale + beta for value in row] for row in channel]
                 for channel, scale, mean, beta in
                 zip(image, scales, values["running_mean"], values["bias"])] for image in images]


class Linear(Module):
    def __init__(self, inputs, features):
        super().__init__(weight=[features, inputs], bias=[features])

    def __call__(self, rows):
        weight = self.values["weight"]
        return [[bias + sum(map(float.__mul__, weight[i * len(row):], row))
                 for i, bias in enumerate(self.values["bias"])] for row in rows]


class Images(list):
    """A batch of images with the operators that the network uses."""

    def __add__(self, other):
        return Images([[[list(map(float.__add__, *rows)) for rows in zip(*channels)]
                        for channels in zip(*images)] for images in zip(self, other)])

    def mean(self, axes):
        assert axes == (2, 3)
        return [[sum(map(sum, channel)) / (len(channel) * len(channel[0])) for channel in image]
                for image in self]


def relu(images):
    return [[[[max(value, 0.0) for value in row] for row in channel] for channel in image]
            for image in images]


def max_pool2d(images, kernel, stride, padding):
    padded = [[Padded([channel], padding, -1e30) for channel in image] for image in images]
    return [[[[max(one.window(row, column, kernel)) for column in one.starts(1, kernel, stride)]
              for row in one.starts(0, kernel, stride)] for one in image] for image in padded]


def returning_images(function):
    return lambda *inputs, **options: Images(function(*inputs, **options))


def install():
    """Makes the stand-in importable as torch."""
    for layer in (Conv2d, BatchNorm2d):
        layer.__call__ = returning_images(layer.__call__)
    torch, functional = types.ModuleType("torch"), types.ModuleType("torch.nn.functional")
    torch.nn = types.ModuleType("torch.nn")
    for layer in (Module, Conv2d, BatchNorm2d, Linear):
        setattr(torch.nn, layer.__name__, layer)
    functional.relu, functional.max_pool2d = map(returning_images, (relu, max_pool2d))
    torch.nn.functional = functional
    sys.modules.update({"torch": torch, "torch.nn": torch.nn, "torch.nn.functional": functional})


def read_into(network, path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    header.pop("__metadata__")
    wanted = network.tensors()
    assert {name: row["shape"] for name, row in header.items()} == {
        name: shape for name, (_, _, shape) in wanted.items()}
    for name, (module, inside, _) in wanted.items():
        begin, end = header[name]["data_offsets"]
        if header[name]["dtype"] == "F32":
            module.values[inside] = list(struct.unpack(f"<{(end - begin) // 4}f", data[begin:end]))


def main():
    install()
    network = runpy.run_path(sys.argv[1])["Network"]()
    read_into(network, sys.argv[2])
    with open(sys.argv[3], encoding="utf-8") as file:
        print(json.dumps(network.forward(Images(json.load(file)))))


if __name__ == "__main__":
    main()
