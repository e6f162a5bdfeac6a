# SPDX-License-Identifier: Apache-2.0
"""The edits that a network of an architecture search allows."""

MAX_PLACES = 75  # of one kind
MAX_PARAMETERS = 2**30
LARGEST_KERNEL = 7


class Places:
    """The legal edits of a network, whose last node is its output."""

    def __init__(self, network):
        self.network, self.nodes = network, network.nodes
        self.readers = {id(node): [] for node in self.nodes}
        for node in self.nodes:
            for read in node.inputs:
                self.readers[id(read)].append(node)
        self.free = MAX_PARAMETERS - sum(rows * channels * pixels
                                         for _, rows, channels, pixels in network.parameters())

    def only(self, node):
        """The only node that reads `node`, else None."""
        readers = self.readers[id(node)] if node else []
        return readers[0] if len(readers) == 1 else None

    def wider(self, node):
        norm = self.only(node)
        relu = self.only(norm)
        if node.kind != "convolution" or not norm or norm.kind != "norm" or not relu or relu.kind != "relu":
            return None
        readers = self.readers[id(relu)]
        if any(reader.kind != "convolution" for reader in readers):
            return None
        added = node.kernel**2 * node.channels() + 2 + sum(next.filters * next.kernel**2 for next in readers)
        return 2 * node.filters, node.filters * added

    def kernel(self, node):
        size = node.kernel + 2
        if node.kind != "convolution" or node.kernel % 2 == 0 or size > LARGEST_KERNEL:
            return None
        if not fits(size, node.inputs[0].extent):
            return None
        return size, node.filters * node.channels() * (size**2 - node.kernel**2)

    def deeper(self, node):
        if node.kind != "relu" or not fits(3, node.extent):
            return None
        channels = node.extent[2]
        filters = -(-channels // 4) if node.inputs[0].kind == "add" else channels
        return filters, (9 * channels + 2 + channels) * filters + 2 * channels

    def deeper_plain(self, node):
        channels = node.extent[2]
        return (channels, (9 * channels + 2) * channels) if self.deeper(node) else None

    def skip(self, start, end):
        if start.kind != "relu" or end.kind != "norm" or self.has_skip(start, end):
            return None
        stride, largest = 1, max(start.extent[:2])
        while stride <= largest:
            if all(-(-have // stride) == want for have, want in zip(start.extent[:2], end.extent[:2])):
                return stride, (start.extent[2] + 2) * end.extent[2]
            stride *= 2
        return None

    def has_skip(self, start, end):
        """Whether a convolution of `start` and a norm are already added to the output of `end`."""
        value, total = end, self.only(end)
        while total and total.kind == "add":
            other = total.inputs[1] if total.inputs[0] is value else total.inputs[0]
            if other.kind == "norm" and other.inputs[0].kind == "convolution" \
                    and other.inputs[0].inputs[0] is start:
                return True
            value, total = total, self.only(total)
        return False

    def all_of(self, kind):
        """All edits of a kind, in the order of the nodes."""
        if kind == "skip":
            pairs = [(start, end) for index, start in enumerate(self.nodes) if start.kind == "relu"
                     for end in self.nodes[index + 1:] if end.kind == "norm"]
            found = [(start, end, self.skip(start, end)) for start, end in pairs]
        else:
            found = [(node, None, getattr(self, kind)(node)) for node in self.nodes]
        return [{"kind": kind, "node": node.name, "end": end.name if end else "", "amount": growth[0]}
                for node, end, growth in found if growth and growth[1] <= self.free]

    def by_kind(self):
        """Lists of at most 75 edits of each kind that has any."""
        lists = []
        plain = ("deeper_plain",) if self.network.has_plain_edits else ()
        for kind in ("wider", "kernel", "skip", "deeper", *plain):
            edits = self.all_of(kind)
            count = min(len(edits), MAX_PLACES)
            if edits:
                lists.append([edits[index * len(edits) // count] for index in range(count)])
        return lists


def fits(kernel, extent):
    """Every weight of the kernel must be able to meet a pixel."""
    return kernel <= 2 * min(extent[0], extent[1]) - 1


def draw_edit(network, stream):
    """An edit of a drawn kind at a drawn place; None if there are none."""
    lists = Places(network).by_kind()
    kind = stream.below(len(lists))
    return lists[kind][stream.below(len(lists[kind]))] if lists else None
