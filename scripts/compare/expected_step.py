#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Computes the expected time of a training step of ResNet-50 v1.5 on a GPU. Measures nothing.

The time of a pass of an operation is its bytes / memory bandwidth or its FLOPs / rate of the matrix
units, whichever is longer. Bytes are what the CUDA engine's kernels read and write according to
kernels/*.hpp, without a cache. Convolutions, joined or not, read and write each
tensor once. Values per channel are not counted. Launches take no time, because a step is one CUDA
graph.

    expected_step.py --batch 400
    expected_step.py --batch 256 --bandwidth 4.8e12 --rate 989e12 --joined all
"""
import argparse

ACTIVATION = 2  # bytes of an element: fp16 or bf16


def convolutions():
    """(name, input side, input channels, kernel, stride, filters, kind of the next norm)."""
    yield "conv1", 224, 4, 7, 2, 64, "stem"  # 3 channels are stored as 4
    side, inputs = 56, 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            stride = 2 if block == 0 and stage > 0 else 1
            name = f"layer{stage + 1}.{block}"
            yield f"{name}.conv1", side, inputs, 1, 1, width, "inside"
            yield f"{name}.conv2", side, width, 3, stride, width, "inside"
            if block == 0:
                yield f"{name}.downsample", side, inputs, 1, stride, 4 * width, "downsample"
            side //= stride
            norm = "first" if block == 0 else "last" if (stage, block) == (3, 2) else "block"
            yield f"{name}.conv3", side, width, 1, 1, 4 * width, norm
            inputs = 4 * width


# Elements that the kernels of a norm read and write per element of x, in kernels/batch_norm.hpp.
BIT = 1 / 8 / ACTIVATION
STATISTICS = 1  # x; nothing if the preceding convolution has computed the sums
APPLY = 2  # x, y
ADDITION = 1 + BIT  # with a residual: r, and the mask
GRADIENT_SUMS = 2  # x, dy
MASKED = 1 + BIT  # with a residual: reads the mask, writes the residual's gradient
SECOND = 1  # the output of every block except the last has two gradients
GRADIENT_APPLY = 3  # x, dy or the residual's gradient, dx
JOINED_GRADIENT = 3  # additional with two joined norms: the inner x twice, the inner dx

# What the engine joins, that is, fuses into one kernel. "norms", in any type: the norm of a block's
# output and the norm of its downsampling, which is applied during the addition; and the norm of the stem
# and the max pooling. The results of the inner norms are never written. "all", in fp16, also: every convolution except the stem's, which has 4 channels,
# computes the sums of its output. The second and third convolution of a block are joined with the norm
# before them: they read its x, and its result is never written.
JOINED = {"nothing": (), "norms": ("downsample", "stem"), "all": ("downsample", "stem", "inside")}


def norm_after(kind, joined):
    """(operation, elements of its forward pass, of its backward pass), per element of x. Yields
    nothing for a norm that is joined to another operation and counted there."""
    if kind in JOINED[joined]:
        return
    statistics = 0 if joined == "all" and kind != "stem" else STATISTICS
    forward, backward = statistics + APPLY, GRADIENT_SUMS + GRADIENT_APPLY
    if kind in ("stem", "inside", "downsample"):
        yield "batch norm (ReLU)", forward, backward
        return
    forward_add = forward + ADDITION
    backward_add = backward + MASKED + (0 if kind == "last" else SECOND)
    if kind == "first" and "downsample" in JOINED[joined]:
        # r is the other norm's x, of the same size.
        yield ("two batch norms, add, ReLU", forward_add + statistics,
               backward_add + JOINED_GRADIENT)
    else:
        yield "batch norm, add, ReLU", forward_add, backward_add


def convolution_passes(batch, joined, layer):
    """Passes of one convolution and of the operations after it."""
    name, side, inputs, kernel, stride, filters, norm = layer
    outputs = batch * (side // stride)**2
    x, y = batch * side**2 * inputs * ACTIVATION, outputs * filters * ACTIVATION
    weights = filters * kernel**2 * inputs
    flops = 2 * outputs * weights * (3 / 4 if name == "conv1" else 1)  # without the padding channel
    norm_before = "inside" in JOINED[joined] and name.endswith((".conv2", ".conv3"))
    kind = f"{'norm, ReLU, ' if norm_before else ''}convolution {kernel}x{kernel}"
    yield kind, "forward", x + y + weights * ACTIVATION, flops
    if norm_before:
        # Also reads x, for the ReLU's sign and the sums. The norm's own kernel, "norm's
        # gradient", then reads and overwrites the result.
        yield kind, "input gradient", 2 * x + y + weights * ACTIVATION, flops
        yield kind, "norm's gradient", GRADIENT_APPLY * x, 0
    elif name != "conv1":
        yield kind, "input gradient", x + y + weights * ACTIVATION, flops
    # The gradient is written in the compute type, then cast to fp32.
    yield kind, "weight gradient", x + y + weights * (2 * ACTIVATION + 4), flops
    for operation, forward, backward in norm_after(norm, joined):  # its x is this y
        yield operation, "forward", forward * y, 0
        yield operation, "backward", backward * y, 0


def passes(batch, joined):
    """(operation, pass, bytes, floating-point operations), one for each pass of an operation."""
    yield "input", "forward", batch * 224 * 224 * (3 + 4 * ACTIVATION), 0
    parameters = copied = 0
    for layer in convolutions():
        name, _, inputs, kernel, _, filters, _ = layer
        weights = filters * kernel**2 * inputs
        parameters += weights + 2 * filters
        copied += weights if name != "conv1" else 0
        yield from convolution_passes(batch, joined, layer)
    large, small, vector = (batch * n for n in (112 * 112 * 64, 56 * 56 * 64, 2048))
    # An index of a maximum is one byte. Two convolutions read the pool's output.
    if "stem" in JOINED[joined]:
        # Writes y and the x of each maximum; the sums read that x and dy, the last kernel x and dy.
        kind, elements = "batch norm, ReLU, max pool", ((STATISTICS + 1) * large + 2 * small,
                                                       2 * large + (3 + 2) * small)
    else:
        kind, elements = "max pool", (large + small, large + 2 * small)
    for direction, count in zip(("forward", "backward"), elements):
        yield kind, direction, count * ACTIVATION + small, 0
    for direction in ("forward", "backward"):
        yield "average pool", direction, (49 + 1) * vector * ACTIVATION, 0
    classes = 1000
    logits, weights = batch * classes, 2048 * classes
    parameters += weights + classes
    copied += weights
    traffic = vector * ACTIVATION + weights * ACTIVATION + 4 * logits
    for direction in ("forward", "input gradient", "weight gradient"):
        yield "linear", direction, traffic, 2 * batch * weights
    yield "softmax, loss", "forward and backward", (4 + 4 + 4 + ACTIVATION) * logits, 0
    # The finite check reads g; SGD reads w, g, v and writes w, v and the working copies of the
    # matrices, except the stem's.
    yield "SGD, finite check", "update", parameters * (4 + 5 * 4) + copied * ACTIVATION, 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=400)
    parser.add_argument("--bandwidth", type=float, default=4.1e12,
                        help="sustained bytes/s of device memory (4.1e12, H200)")
    parser.add_argument("--rate", type=float, default=600e12,
                        help="sustained FLOP/s of convolutions (600e12, assumed)")
    parser.add_argument("--joined", choices=JOINED, default="nothing",
                        help="operations that run as one: all operations that mixed joins, or "
                             "only the norms, as in bf16")
    parser.add_argument("--reached", type=float, nargs=2, default=(0.66, 0.75),
                        help="range of the share of this bound that whole programs reach")
    arguments = parser.parse_args()
    rows = {}
    for operation, direction, count, flops in passes(arguments.batch, arguments.joined):
        seconds = max(count / arguments.bandwidth, flops / arguments.rate)
        row = rows.setdefault((operation, direction), [0, 0.0, 0.0, 0.0])
        for i, value in enumerate((1, count, flops, seconds)):
            row[i] += value
    total = sum(row[3] for row in rows.values())
    print(f"ResNet-50 v1.5, 224 x 224, batch {arguments.batch}, activations of {ACTIVATION} bytes, "
          f"joined: {arguments.joined}, {arguments.bandwidth / 1e12:g} TB/s, "
          f"{arguments.rate / 1e12:g} TFLOP/s\n")
    print("| operation | pass | number | GB | TFLOP | ms | share |\n|---|---|---|---|---|---|---|")
    for (operation, direction), (number, count, flops, seconds) in rows.items():
        print(f"| {operation} | {direction} | {number} | {count / 1e9:.2f} | {flops / 1e12:.3f} | "
              f"{1e3 * seconds:.2f} | {100 * seconds / total:.1f} % |")
    sums = [sum(row[i] for row in rows.values()) for i in range(4)]
    print(f"| all | | {sums[0]} | {sums[1] / 1e9:.2f} | {sums[2] / 1e12:.3f} | {1e3 * total:.2f} | "
          f"100 % |\n")
    low, high = (arguments.batch * share / total for share in arguments.reached)
    print(f"bound: {1e3 * total:.1f} ms, {arguments.batch / total:.0f} images/s, "
          f"{sums[1] / arguments.batch / 1e6:.0f} MB an image; at {arguments.reached[0]} to "
          f"{arguments.reached[1]} of it: {low:.0f} to {high:.0f} images/s")


if __name__ == "__main__":
    main()
