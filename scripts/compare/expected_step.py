#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Expected time of a training step of ResNet-50 v1.5 on a GPU: an expectation, no measurement.

Each pass of each operation takes the longer of its bytes over the memory's bandwidth and its
floating-point operations over the matrix units' rate. Bytes are what the CUDA engine's kernels say
in kernels/*.hpp that they read and write, once each and nothing from the cache; convolutions
read and write each tensor once. Nothing is added for launches: a step is one CUDA graph.

    expected_step.py --batch 400
    expected_step.py --batch 256 --bandwidth 4.8e12 --rate 989e12 --fused-statistics
"""
import argparse

ACTIVATION = 2  # bytes of an element: fp16 or bf16


def convolutions():
    """(name, input side, input channels, kernel, stride, filters, what normalizes the output)."""
    yield "conv1", 224, 4, 7, 2, 64, "bn_relu"  # 3 channels are stored as 4
    side, inputs = 56, 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            stride = 2 if block == 0 and stage > 0 else 1
            name = f"layer{stage + 1}.{block}"
            last = (stage, block) == (3, 2)
            yield f"{name}.conv1", side, inputs, 1, 1, width, "bn_relu"
            yield f"{name}.conv2", side, width, 3, stride, width, "bn_relu"
            if block == 0:
                yield f"{name}.downsample", side, inputs, 1, stride, 4 * width, "bn"
            side //= stride
            joined = "bn_add_relu_last" if last else "bn_add_relu"
            yield f"{name}.conv3", side, width, 1, 1, 4 * width, joined
            inputs = 4 * width


# Elements read and written per element of the normalized tensor, forward and backward, in
# kernels/batch_norm.hpp: statistics 1 and apply 2 (with the residual 3 and a mask's bit); gradient
# sums 2 and apply 3. With a residual its gradient is written between and read in place of dy; the
# output of a block but the last has two gradients.
BIT = 1 / 8 / ACTIVATION
NORMALIZATION = {
    "bn": (3, 5),
    "bn_relu": (3, 5),
    "bn_add_relu": (4 + BIT, 7 + BIT),
    "bn_add_relu_last": (4 + BIT, 6 + BIT),
}


def passes(batch, statistics_read):
    """(operation, pass, bytes, floating-point operations), one a pass of an operation.
    Statistics read the normalized tensor once, or not at all where a convolution forms them."""
    yield "input", "forward", batch * 224 * 224 * (3 + 4 * ACTIVATION), 0
    parameters = 0
    for name, side, inputs, kernel, stride, filters, normalization in convolutions():
        outputs = batch * (side // stride)**2
        x, y = batch * side**2 * inputs * ACTIVATION, outputs * filters * ACTIVATION
        weights = filters * kernel**2 * inputs
        flops = 2 * outputs * weights * (3 / 4 if name == "conv1" else 1)  # of true channels
        parameters += weights + 2 * filters
        kind = f"convolution {kernel}x{kernel}"
        yield kind, "forward", x + y + weights * ACTIVATION, flops
        if name != "conv1":
            yield kind, "input gradient", x + y + weights * ACTIVATION, flops
        # Written in the compute type, then cast to fp32.
        yield kind, "weight gradient", x + y + weights * (2 * ACTIVATION + 4), flops
        forward, backward = NORMALIZATION[normalization]
        forward -= 0 if statistics_read else 1
        kind = "batch norm, add, ReLU" if "add" in normalization else "batch norm (ReLU)"
        yield kind, "forward", forward * y, 0
        yield kind, "backward", backward * y, 0
    large, small, vector = (batch * n for n in (112 * 112 * 64, 56 * 56 * 64, 2048))
    # The winners are bytes; the pool's output is read by two convolutions.
    yield "max pool", "forward", (large + small) * ACTIVATION + small, 0
    yield "max pool", "backward", (large + 2 * small) * ACTIVATION + small, 0
    for direction in ("forward", "backward"):
        yield "average pool", direction, (49 + 1) * vector * ACTIVATION, 0
    classes = 1000
    logits, weights = batch * classes, 2048 * classes
    parameters += weights + classes
    traffic = vector * ACTIVATION + weights * ACTIVATION + 4 * logits
    for direction in ("forward", "input gradient", "weight gradient"):
        yield "linear", direction, traffic, 2 * batch * weights
    yield "softmax, loss", "forward and backward", (4 + 4 + 4 + ACTIVATION) * logits, 0
    yield "working copies", "prepare", parameters * (4 + ACTIVATION), 0
    # Finite check reads g; SGD reads w, g, v and writes w, v.
    yield "SGD, finite check", "update", parameters * (4 + 5 * 4), 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=400)
    parser.add_argument("--bandwidth", type=float, default=4.1e12,
                        help="sustained bytes/s of device memory (4.1e12, H200)")
    parser.add_argument("--rate", type=float, default=600e12,
                        help="sustained FLOP/s of convolutions (600e12, assumed)")
    parser.add_argument("--fused-statistics", action="store_true",
                        help="convolutions form the statistics of their outputs")
    parser.add_argument("--reached", type=float, nargs=2, default=(0.66, 0.75),
                        help="range of the share of this bound that whole programs reach")
    arguments = parser.parse_args()
    rows = {}
    for operation, direction, count, flops in passes(arguments.batch, not arguments.fused_statistics):
        seconds = max(count / arguments.bandwidth, flops / arguments.rate)
        row = rows.setdefault((operation, direction), [0, 0.0, 0.0, 0.0])
        for i, value in enumerate((1, count, flops, seconds)):
            row[i] += value
    total = sum(row[3] for row in rows.values())
    print(f"ResNet-50 v1.5, 224 x 224, batch {arguments.batch}, activations of {ACTIVATION} bytes, "
          f"{arguments.bandwidth / 1e12:g} TB/s, {arguments.rate / 1e12:g} TFLOP/s\n")
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
