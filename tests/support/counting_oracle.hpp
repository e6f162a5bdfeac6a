// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <variant>

#include <hpcai/ops/flops.hpp>
#include <hpcai/ops/operation.hpp>

/// FLOPs found by executing the loops of naive operations and counting in their innermost
/// statement. This file contains no formula of the ledgers, only the cost of one statement in each.
namespace hpcai::counting {

using tensor::Shape;

/// Numbers of arithmetic operations that a naive operation executes.
struct Tally {
    std::uint64_t multiply_adds = 0;  // one product and one sum
    std::uint64_t additions = 0;
    std::uint64_t divisions = 0;
    std::uint64_t exponentials = 0;
    std::uint64_t comparisons = 0;
    std::uint64_t inputs = 0;  // elements that are read, each counted once
};

/// An operation's passes. The update is the optimizer's product and sum for each parameter.
struct Walk {
    Tally forward, weight_gradient, input_gradient, update;
};

/// Calls body() for each element of x (N, H, W, C) or (N, C).
template <typename Body>
void for_each_element(const Shape& shape, const Body& body) {
    for (std::int64_t i = 0; i < shape.elements(); ++i) body();
}

/// Calls body() for each weight of (K, R, S, C).
template <typename Body>
void for_each_weight(const ops::Convolution& op, const Body& body) {
    for (std::int64_t k = 0; k < op.filters; ++k)
        for (std::int64_t r = 0; r < op.kernel; ++r)
            for (std::int64_t s = 0; s < op.kernel; ++s)
                for (std::int64_t c = 0; c < op.input[3]; ++c) body();
}

/// Calls body() for each output pixel of one channel.
template <typename Body>
void for_each_pixel(const Shape& y, const Body& body) {
    for (std::int64_t n = 0; n < y[0]; ++n)
        for (std::int64_t p = 0; p < y[1]; ++p)
            for (std::int64_t q = 0; q < y[2]; ++q) body();
}

/// Each pixel of the padded image sums over the windows that cover it.
inline std::uint64_t walk_input_gradient(const ops::Convolution& op, const Shape& y) {
    std::uint64_t count = 0;
    const auto covers = [&](std::int64_t pixel, std::int64_t tap, std::int64_t windows) {
        const std::int64_t start = pixel - tap;
        return start >= 0 && start % op.stride == 0 && start / op.stride < windows;
    };
    const Shape padded{y[0], op.input[1] + 2 * op.padding, op.input[2] + 2 * op.padding};
    for (std::int64_t n = 0; n < padded[0]; ++n)
        for (std::int64_t h = 0; h < padded[1]; ++h)
            for (std::int64_t w = 0; w < padded[2]; ++w)
                for (std::int64_t r = 0; r < op.kernel; ++r)
                    for (std::int64_t s = 0; s < op.kernel; ++s) {
                        if (!covers(h, r, y[1]) || !covers(w, s, y[2])) continue;
                        for (std::int64_t k = 0; k < op.filters; ++k)
                            for (std::int64_t c = 0; c < op.input[3]; ++c) ++count;
                    }
    return count;
}

/// Factors in the padding count like others: a naive convolution multiplies the zeros there.
inline Walk walk(const ops::Convolution& op) {
    const Shape y = output_shape(op);
    Walk counts;
    for_each_pixel(y, [&] { for_each_weight(op, [&] { ++counts.forward.multiply_adds; }); });
    for_each_weight(op, [&] {
        for_each_pixel(y, [&] { ++counts.weight_gradient.multiply_adds; });
        for (std::int64_t n = 0; n < y[0]; ++n) ++counts.update.multiply_adds;
    });
    counts.input_gradient.multiply_adds = walk_input_gradient(op, y);
    return counts;
}

inline Walk walk(const ops::Linear& op) {
    Walk counts;
    for (std::int64_t n = 0; n < op.input[0]; ++n)
        for (std::int64_t f = 0; f < op.features; ++f) {
            for (std::int64_t c = 0; c < op.input[1]; ++c) {
                ++counts.forward.multiply_adds;
                ++counts.weight_gradient.multiply_adds;
                ++counts.input_gradient.multiply_adds;
                ++counts.update.multiply_adds;
            }
            ++counts.update.multiply_adds;  // the bias
        }
    return counts;
}

/// y = gamma ((x - mean) / deviation) + beta.
inline Walk walk(const ops::BatchNorm& op) {
    Walk counts;
    for_each_element(op.input, [&] {
        ++counts.forward.inputs;
        ++counts.forward.additions;
        ++counts.forward.divisions;
        ++counts.forward.multiply_adds;
    });
    return counts;
}

inline Walk walk(const ops::Relu& op) {
    Walk counts;
    for_each_element(op.input, [&] {
        ++counts.forward.inputs;
        ++counts.forward.comparisons;
    });
    return counts;
}

inline Walk walk(const ops::Add& op) {
    Walk counts;
    for_each_element(op.input, [&] {
        ++counts.forward.inputs;
        ++counts.forward.additions;
    });
    return counts;
}

inline Walk walk(const ops::MaxPool& op) {
    Walk counts;
    for_each_element(op.input, [&] { ++counts.forward.inputs; });
    for_each_element(output_shape(op), [&] {
        for (std::int64_t r = 0; r < op.kernel; ++r)
            for (std::int64_t s = 0; s < op.kernel; ++s) ++counts.forward.comparisons;
    });
    return counts;
}

inline Walk walk(const ops::GlobalAveragePool& op) {
    Walk counts;
    for_each_element(output_shape(op), [&] {
        for (std::int64_t pixel = 0; pixel < op.input[1] * op.input[2]; ++pixel) {
            ++counts.forward.inputs;
            if (pixel > 0) ++counts.forward.additions;  // the first pixel starts the sum
        }
        ++counts.forward.divisions;
    });
    return counts;
}

inline Walk walk(const ops::SoftmaxCrossEntropy& op) {
    Walk counts;
    for (std::int64_t n = 0; n < op.input[0]; ++n)
        for (std::int64_t f = 0; f < op.input[1]; ++f) {
            ++counts.forward.exponentials;
            if (f > 0) ++counts.forward.additions;
            ++counts.forward.divisions;
        }
    return counts;
}

inline Walk walk(const ops::CellCrossEntropy& op) {
    const std::int64_t cells = op.input[0] * op.input[1] * op.input[2];
    return walk(ops::SoftmaxCrossEntropy{{cells, op.input[3]}});
}

inline Walk walk(const ops::InputNormalize&) {
    return {};
}

/// A fused operation is counted as its parts.
inline Walk walk(const ops::DualNorm&) {
    return {};
}
inline Walk walk(const ops::PointwiseNorm&) {
    return {};
}
inline Walk walk(const ops::NormPool&) {
    return {};
}

inline Walk walk(const ops::Operation& operation) {
    return std::visit([](const auto& op) { return walk(op); }, operation);
}

/// AIPerf's costs: add, multiply and compare 1, divide 4, exponential 8.
inline std::int64_t aiperf_price(const Tally& tally) {
    return static_cast<std::int64_t>(2 * tally.multiply_adds + tally.additions + tally.comparisons +
                                     4 * tally.divisions + 8 * tally.exponentials);
}

/// Paper, table 3: products and sums of convolutions, products of a linear layer, one for each
/// input of other operations; each gradient pass costs as much as forward.
inline ops::Flops table3_flops(const ops::Operation& operation, const Walk& counts) {
    const bool is_convolution = std::holds_alternative<ops::Convolution>(operation);
    const bool is_linear = std::holds_alternative<ops::Linear>(operation);
    const std::uint64_t forward = is_convolution ? 2 * counts.forward.multiply_adds
                                  : is_linear    ? counts.forward.multiply_adds
                                                 : counts.forward.inputs;
    const auto flops = static_cast<std::int64_t>(forward);
    return {flops, flops, flops};
}

/// Each product and its sum in convolutions and linear layers cost 2.
inline ops::Flops two_mac_flops(const ops::Operation& operation, const Walk& counts) {
    if (!std::holds_alternative<ops::Convolution>(operation) &&
        !std::holds_alternative<ops::Linear>(operation)) {
        return {};
    }
    return {static_cast<std::int64_t>(2 * counts.forward.multiply_adds),
            static_cast<std::int64_t>(2 * counts.weight_gradient.multiply_adds),
            static_cast<std::int64_t>(2 * counts.input_gradient.multiply_adds)};
}

/// AIPerf's backward passes are the gradients of convolutions and linear layers with the update of
/// their weights, once per sample. The 36 of a normalization is AIPerf's constant, which no loop
/// gives.
inline ops::Flops aiperf_flops(const ops::Operation& operation, const Walk& counts) {
    ops::Flops flops{aiperf_price(counts.forward),
                     aiperf_price(counts.weight_gradient) + aiperf_price(counts.update),
                     aiperf_price(counts.input_gradient)};
    if (const auto* norm = std::get_if<ops::BatchNorm>(&operation)) {
        flops.weight_gradient = 36 * norm->input[0];
    }
    return flops;
}

/// Returns the FLOPs of `operation` by the ledgers of docs/METRICS.md, from its `counts`.
inline ops::Flops flops(const ops::Operation& operation, const Walk& counts, ops::Ledger ledger,
                        bool first_layer) {
    if (ledger == ops::Ledger::table3) return table3_flops(operation, counts);
    ops::Flops flops = ledger == ops::Ledger::two_mac ? two_mac_flops(operation, counts)
                                                      : aiperf_flops(operation, counts);
    if (first_layer) flops.input_gradient = 0;
    return flops;
}

}  // namespace hpcai::counting
