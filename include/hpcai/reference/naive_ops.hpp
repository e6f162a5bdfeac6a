// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <hpcai/ops/operation.hpp>
#include <hpcai/tensor/shape.hpp>

/// Every operation as plain loops over doubles, forward and backward: the reference for all
/// devices. The code is easy to verify rather than fast.
namespace hpcai::naive {

using tensor::Shape;

/// Doubles in canonical order: images (N, H, W, C), filters (K, R, S, C).
struct Tensor {
    Shape shape;
    std::vector<double> values;

    Tensor() = default;
    explicit Tensor(const Shape& extents, double value = 0)
        : shape(extents), values(static_cast<std::size_t>(extents.elements()), value) {}
    double& operator[](std::int64_t index) { return values[static_cast<std::size_t>(index)]; }
    double operator[](std::int64_t index) const { return values[static_cast<std::size_t>(index)]; }
};

inline std::int64_t image_index(const Shape& shape, std::int64_t n, std::int64_t h, std::int64_t w,
                                std::int64_t c) {
    return ((n * shape[1] + h) * shape[2] + w) * shape[3] + c;
}

/// One operation with all its inputs. Pixels and labels are inputs like any other.
struct Problem {
    ops::Operation operation;
    bool training = true;
    std::vector<Tensor> inputs;
    std::vector<Tensor> parameters;
    // The output's gradient is the sum of these. Without any, only a loss has gradients.
    std::vector<Tensor> output_gradients;
    Tensor running_mean, running_variance;  // (C), equal for both norms of a DualNorm
    double loss_scale = 1;
    bool is_first_layer = false;  // true: no input gradients
};

/// The results of an operation. For pixels and labels, the tensor in input_gradients is empty.
struct Solution {
    Tensor output;
    Tensor sums;    // (2, K), if ops::outputs_channel_sums()
    Tensor losses;  // (N), if ops::outputs_softmax()
    std::vector<Tensor> input_gradients;
    std::vector<Tensor> parameter_gradients;
    Tensor running_mean, running_variance;
    Tensor inner_running_mean, inner_running_variance;  // of a DualNorm only
};

/// Calls body(n, p, q, h, w, r, s) for the taps (r, s) of windows (p, q) whose pixel (h, w) exists.
template <typename Window, typename Body>
void for_each_tap(const Window& op, const Shape& output, const Body& body) {
    for (std::int64_t n = 0; n < output[0]; ++n)
        for (std::int64_t p = 0; p < output[1]; ++p)
            for (std::int64_t q = 0; q < output[2]; ++q)
                for (std::int64_t r = 0; r < op.kernel; ++r)
                    for (std::int64_t s = 0; s < op.kernel; ++s) {
                        const std::int64_t h = p * op.stride + r - op.padding;
                        const std::int64_t w = q * op.stride + s - op.padding;
                        if (h < 0 || h >= op.input[1] || w < 0 || w >= op.input[2]) continue;
                        body(n, p, q, h, w, r, s);
                    }
}

/// Returns the sum of tensors of one shape.
Tensor sum(const std::vector<Tensor>& parts);

/// Returns, for each channel, the sum of its elements and the sum of their squares: (2, C).
Tensor channel_sums(const Tensor& value);

/// Returns the output and the gradients. Except for a loss, gradients follow from output_gradients
/// and are not valid without them. Throws Error(internal) for AllGather and ReduceScatter, which
/// need all shards of a network.
Solution solve(const Problem& problem);

}  // namespace hpcai::naive
