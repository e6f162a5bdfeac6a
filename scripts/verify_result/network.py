# SPDX-License-Identifier: Apache-2.0
"""The root of an architecture search as a graph, its edits, and their parameters and FLOPs."""
import json
import math

from findings import MalformedFile

LEDGERS = ("table3", "two_mac", "aiperf")


class Node:
    """`inputs` are nodes; `filters`, `kernel` and `stride` are those of a convolution."""

    def __init__(self, name, kind, inputs, filters=0, kernel=0, stride=0):
        self.name, self.kind, self.inputs = name, kind, inputs
        self.filters, self.kernel, self.stride = filters, kernel, stride
        self.extent = (0, 0, 0)  # height, width, channels of the output

    def channels(self):
        """The channels of the input."""
        return self.inputs[0].extent[2]

    def update(self):
        """Sets the extent of the output from those of the inputs."""
        if not self.inputs:
            return
        height, width, channels = self.inputs[0].extent
        if self.kind in ("convolution", "pool"):
            height, width = -(-height // self.stride), -(-width // self.stride)
        if self.kind == "mean":
            height, width = 1, 1
        self.extent = height, width, self.filters if self.kind in ("convolution", "linear") else channels


class Network:
    """The nodes in order. Names of layers are those of the program."""

    def __init__(self, config):
        self.nodes, self.classes = [], int(config["workload.classes"])
        self.has_plain_edits = config["search.plain_deepening"] == "true"
        self.strides_on_3x3 = config["workload.model"] != "resnet50_v1"
        size, width = int(config["workload.image_size"]), int(config["workload.backbone_width"])
        images = self.add(Node("images", "images", []))
        images.extent = size, size, int(config["workload.channels"])
        x = self.norm("bn1", self.convolution("conv1", images, width, 7, 2))
        x = self.add(Node("maxpool", "pool", [self.relu("relu", x)], kernel=3, stride=2))
        for stage, blocks in enumerate(json.loads(config["search.root_blocks"])):
            for index in range(blocks):
                x = self.block(f"layer{stage + 1}.{index}", x, width << stage, 2 if stage and not index else 1)
        x = self.add(Node("avgpool", "mean", [x]))
        self.add(Node("fc", "linear", [x], self.classes))

    def add(self, node):
        node.update()
        self.nodes.append(node)
        return node

    def convolution(self, name, x, filters, kernel, stride=1):
        return self.add(Node(name, "convolution", [x], filters, kernel, stride))

    def norm(self, name, x):
        return self.add(Node(name, "norm", [x]))

    def relu(self, name, x):
        return self.add(Node(name, "relu", [x]))

    def block(self, name, x, width, stride):
        first, second = (1, stride) if self.strides_on_3x3 else (stride, 1)
        y = self.convolution(name + ".conv1", x, width, 1, first)
        y = self.relu(name + ".relu1", self.norm(name + ".bn1", y))
        y = self.convolution(name + ".conv2", y, width, 3, second)
        y = self.relu(name + ".relu2", self.norm(name + ".bn2", y))
        y = self.convolution(name + ".conv3", y, 4 * width, 1)
        shortcut = x
        if stride != 1 or x.extent[2] != 4 * width:
            shortcut = self.convolution(name + ".downsample.0", x, 4 * width, 1, stride)
            shortcut = self.norm(name + ".downsample.1", shortcut)
        y = self.norm(name + ".bn3", y)
        return self.relu(name + ".relu3", self.add(Node(name + ".add", "add", [y, shortcut])))

    def find(self, name, kind):
        for node in self.nodes:
            if node.name == name and node.kind == kind:
                return node
        raise MalformedFile(f"an edit names {name}, which is no {kind} of its network")

    def insert(self, after, make):
        """Inserts the nodes of make(network of only these); readers of `after` read the last instead."""
        readers = [node for node in self.nodes if after in node.inputs]
        position, rest = self.nodes.index(after) + 1, self.nodes
        self.nodes = []
        last = make()
        made, self.nodes = self.nodes, rest
        for node in readers:
            node.inputs = [last if read is after else read for read in node.inputs]
        self.nodes[position:position] = made

    def edit(self, position, edit):
        """Applies the edit with this position in its script."""
        kind, name = edit["kind"], f"edit{position}."
        if kind in ("wider", "kernel"):
            node = self.find(edit["node"], "convolution")
            wanted = 2 * node.filters if kind == "wider" else node.kernel + 2
            if kind == "wider":
                node.filters = wanted
            else:
                node.kernel = wanted
        elif kind == "skip":
            wanted = self.skip(name, self.find(edit["node"], "relu"), self.find(edit["end"], "norm"))
        elif kind == "deeper":
            wanted = self.deeper(name, self.find(edit["node"], "relu"))
        elif kind == "deeper_plain":
            wanted = self.deeper_plain(name, self.find(edit["node"], "relu"))
        else:
            raise MalformedFile(f"an edit has the kind {kind}")
        if edit["amount"] != wanted:
            raise MalformedFile(f"an edit has the amount {edit['amount']}; must have {wanted}")
        for node in self.nodes:
            node.update()

    def skip(self, name, start, end):
        stride = 1
        while -(-start.extent[0] // stride) > end.extent[0]:
            stride *= 2

        def make():
            y = self.norm(name + "bn", self.convolution(name + "conv", start, end.extent[2], 1, stride))
            return self.add(Node(name + "add", "add", [end, y]))

        self.insert(end, make)
        return stride

    def deeper(self, name, x):
        filters = -(-x.extent[2] // 4) if x.inputs[0].kind == "add" else x.extent[2]

        def make():
            y = self.relu(name + "relu1", self.norm(name + "bn1", self.convolution(name + "conv1", x, filters, 3)))
            y = self.norm(name + "bn2", self.convolution(name + "conv2", y, x.extent[2], 1))
            return self.relu(name + "relu2", self.add(Node(name + "add", "add", [y, x])))

        self.insert(x, make)
        return filters

    def deeper_plain(self, name, x):
        def make():
            return self.relu(name + "relu", self.norm(name + "bn", self.convolution(name + "conv", x, x.extent[2], 3)))

        self.insert(x, make)
        return x.extent[2]

    def parameters(self):
        """(name, rows, channels, pixels) in the order of the nodes."""
        rows = []
        for node in self.nodes:
            if node.kind in ("convolution", "linear"):
                rows.append((node.name + ".weight", node.filters, node.channels(), node.kernel**2 or 1))
            if node.kind == "linear":
                rows.append((node.name + ".bias", node.filters, 1, 1))
            if node.kind == "norm":
                rows += [(f"{node.name}.{part}", node.extent[2], 1, 1) for part in ("weight", "bias")]
        return rows

    def statistics(self):
        return [(node.name, node.extent[2]) for node in self.nodes if node.kind == "norm"]

    def flops(self, ledger):
        """(training, evaluation) of one sample."""
        counts = [count(node, ledger) for node in self.nodes]
        forward = sum(row[0] for row in counts)
        softmax = 13 * self.classes - 1 if ledger == "aiperf" else 0
        return sum(map(sum, counts)) + softmax, forward + softmax


def count(node, ledger):
    """(forward, gradient of the weights, gradient of the input) of a node for one sample."""
    if not node.inputs:
        return 0, 0, 0
    is_first = node.inputs[0].kind == "images"
    read = math.prod(node.inputs[0].extent)
    if node.kind in ("convolution", "linear"):
        weights = (node.kernel**2 or 1) * node.channels() * node.filters
        pixels = node.extent[0] * node.extent[1]
        products = 2 * weights * pixels
        if ledger == "two_mac":
            return products, products, 0 if is_first else products
        if ledger == "table3":  # counts a linear layer without the factor 2
            forward = products if node.kind == "convolution" else weights
            return forward, forward, forward
        update = 2 * (weights + (node.filters if node.kind == "linear" else 0))
        return products, products + update, 0 if is_first else products
    if ledger == "two_mac":
        return 0, 0, 0
    if ledger == "table3":
        return read, read, read
    height, width, channels = node.inputs[0].extent
    counts = {"norm": (7 * read, 36, 0), "relu": (read, 0, 0), "add": (read, 0, 0),
              "pool": (read * node.kernel**2 // node.stride**2 if node.kind == "pool" else 0, 0, 0),
              "mean": (channels * (height * width + 3), 0, 0)}
    return counts[node.kind]


def memory_bytes(network, config, record):
    """A bound of a rank's parameters, gradients, optimizer states, working copies and activations."""
    states = 2 if config["training.optimizer"] in ("lamb", "adam", "adamw") else 1
    size = 2 if record["workload"]["precision"] in ("bf16", "fp16", "mixed") else 4
    samples = int(config["training.batch_size"]) // max(1, record["topology"]["degree"])
    weights = sum(rows * channels * pixels for _, rows, channels, pixels in network.parameters())
    elements = sum(math.prod(node.extent) for node in network.nodes) + network.classes  # and the softmax
    return weights * (4 * (2 + states) + 2 * size) + elements * samples * size


def edited_network(config, edits):
    network = Network(config)
    for position, edit in enumerate(edits):
        network.edit(position, edit)
    return network
