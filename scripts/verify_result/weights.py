# SPDX-License-Identifier: Apache-2.0
"""The digest of a model's weights from its safetensors file."""
import array
import hashlib
import itertools
import json
import math
import struct

from findings import MalformedFile

MAX_HEADER_BYTES = 100_000_000


class Safetensors:
    """A safetensors file from which tensors are taken one after another."""

    def __init__(self, name, data):
        self.name, self.data, self.spans = name, data, []
        try:
            size = struct.unpack("<Q", data[:8])[0]
            self.entries = json.loads(data[8:8 + size])
        except (ValueError, struct.error) as error:
            raise MalformedFile(f"{name}: is not a safetensors file") from error
        self.start = 8 + size
        self.entries.pop("__metadata__", None)

    def take(self, tensor, kind, count):
        """Bytes of `count` elements of F32 or I64."""
        entry = self.entries.pop(tensor, None)
        if entry is None or entry["dtype"] != kind:
            raise MalformedFile(f"{self.name}: has no {tensor} of {kind}")
        begin, end = (self.start + offset for offset in entry["data_offsets"])
        size = count * (8 if kind == "I64" else 4)
        if end - begin != size or end > len(self.data) or begin < self.start:
            raise MalformedFile(f"{self.name}: tensor {tensor} has a wrong size")
        self.spans.append((begin, end))
        return self.data[begin:end]

    def require_fully_read(self):
        """Requires that all tensors were taken and that they fill the file."""
        if self.entries:
            raise MalformedFile(f"{self.name}: has tensors that the model does not have: {sorted(self.entries)[:3]}")
        spans = sorted(self.spans)
        begins = [begin for begin, _ in spans] + [len(self.data)]
        if begins != [self.start] + [end for _, end in spans]:
            raise MalformedFile(f"{self.name}: has bytes between or after its tensors")


def channels_last(stored, rows, channels, pixels):
    """f32 elements reordered from (rows, channels, pixels) to (rows, pixels, channels)."""
    values, row = array.array("f", stored), channels * pixels
    ordered = array.array("f")
    for start, pixel in itertools.product(range(0, rows * row, row), range(pixels)):
        ordered.extend(values[start + pixel:start + row:pixels])
    return ordered.tobytes()


def weights_digest(files, name, layers, batches):
    """SHA-256 of parameters and statistics in the model's order; `batches`: expected num_batches_tracked."""
    parameters, statistics = layers
    elements = sum(math.prod(shape) for _, *shape in parameters)
    elements += sum(3 * size for _, size in statistics)
    weights = Safetensors(name, files.read(name, 8 * elements + MAX_HEADER_BYTES))
    digest = hashlib.sha256()
    for tensor, rows, channels, pixels in parameters:
        stored = weights.take(tensor, "F32", rows * channels * pixels)
        digest.update(channels_last(stored, rows, channels, pixels) if pixels > 1 else stored)
    for norm, channels in statistics:
        digest.update(weights.take(norm + ".running_mean", "F32", channels))
        digest.update(weights.take(norm + ".running_var", "F32", channels))
        steps = struct.unpack("<q", weights.take(norm + ".num_batches_tracked", "I64", 1))[0]
        files.findings.must_be(name, norm + ".num_batches_tracked", steps, batches)
    weights.require_fully_read()
    return digest.hexdigest()
