// SPDX-License-Identifier: Apache-2.0
#include <hpcai/ops/flops.hpp>

namespace hpcai::ops {
namespace {

std::int64_t multiply_accumulates(const Convolution& op) {
    return output_shape(op).elements() * op.kernel * op.kernel * op.input[3];
}

std::int64_t multiply_accumulates(const Linear& op) {
    return op.input[0] * op.input[1] * op.features;
}

/// Training = 3 x forward for every layer, as in the paper's example of APC (docs/METRICS.md).
Flops three_times(std::int64_t forward) {
    return {forward, forward, forward};
}

/// HPC AI500 V3.0, table 3.
struct Table3 {
    Flops operator()(const Convolution& op) const {
        return three_times(2 * multiply_accumulates(op));
    }
    Flops operator()(const BatchNorm& op) const {
        return three_times(op.input.elements() * (1 + op.add + op.relu));
    }
    Flops operator()(const GroupNorm& op) const {
        return three_times(op.input.elements() * (1 + op.relu));
    }
    // The table does not count additions of biases or operations of detection.
    Flops operator()(const Bias& op) const {
        return three_times(op.relu ? op.input.elements() : 0);
    }
    Flops operator()(
        const OneOf<UpsampleAdd, Relu, Add, MaxPool, GlobalAveragePool> auto& op) const {
        return three_times(op.input.elements());
    }
    // The paper counts a fully connected layer without the factor 2.
    Flops operator()(const Linear& op) const {
        return three_times(multiply_accumulates(op) + (op.relu ? output_shape(op).elements() : 0));
    }
    Flops operator()(const auto&) const { return {}; }
};

/// Counts 2 per multiply-accumulate of convolutions and fully connected layers, nothing else.
struct TwoMac {
    bool first_layer;
    Flops per_pass(std::int64_t forward) const {
        return {forward, forward, first_layer ? 0 : forward};
    }
    Flops operator()(const Convolution& op) const { return per_pass(2 * multiply_accumulates(op)); }
    Flops operator()(const Linear& op) const { return per_pass(2 * multiply_accumulates(op)); }
    Flops operator()(const auto&) const { return {}; }
};

/// Counts like AIPerf's profiler (thu-pacman/AIPerf and AI-HPC-Research-Team/AIPerf): 1 for add,
/// multiply and compare, 4 for divide and square root, 8 for exponential. A normalization counts 7
/// for each element forward and 36 for each sample backward. An update counts 2 for each weight and
/// sample.
struct AiPerf {
    bool first_layer;
    Flops operator()(const Convolution& op) const {
        const Shape output = output_shape(op);
        const std::int64_t weights = op.kernel * op.kernel * op.input[3] * output[3];
        const std::int64_t pixels = output[1] * output[2];
        return {2 * weights * pixels * output[0], weights * (2 * pixels + 2) * output[0],
                first_layer ? 0 : weights * 2 * pixels * output[0]};
    }
    Flops operator()(const BatchNorm& op) const {
        return {op.input.elements() * (7 + op.add + op.relu), 36 * op.input[0], 0};
    }
    Flops operator()(const GroupNorm& op) const {
        return {op.input.elements() * (7 + op.relu), 36 * op.input[0], 0};
    }
    Flops operator()(const Bias& op) const { return {op.input.elements() * (1 + op.relu), 0, 0}; }
    Flops operator()(const OneOf<UpsampleAdd, Relu, Add> auto& op) const {
        return {op.input.elements(), 0, 0};
    }
    Flops operator()(const MaxPool& op) const {
        return {op.input.elements() * op.kernel * op.kernel / (op.stride * op.stride), 0, 0};
    }
    Flops operator()(const GlobalAveragePool& op) const {
        const std::int64_t pixels = op.input[1] * op.input[2];
        return {op.input[0] * op.input[3] * (pixels - 1 + 4), 0, 0};
    }
    Flops operator()(const Linear& op) const {
        const std::int64_t macs = multiply_accumulates(op);
        const std::int64_t update = 2 * op.input[0] * (op.input[1] + 1) * op.features;
        const std::int64_t relu = op.relu ? output_shape(op).elements() : 0;
        return {2 * macs + relu, 2 * macs + update, first_layer ? 0 : 2 * macs};
    }
    Flops operator()(const SoftmaxCrossEntropy& op) const {
        return {softmax(op.input[0], op.input[1]), 0, 0};
    }
    Flops operator()(const CellCrossEntropy& op) const {
        return {softmax(op.input[0] * op.input[1] * op.input[2], op.input[3]), 0, 0};
    }
    static std::int64_t softmax(std::int64_t rows, std::int64_t classes) {
        return rows * (8 * classes + (classes - 1) + 4 * classes);
    }
    // The profiler does not count operations of detection.
    Flops operator()(const auto&) const { return {}; }
};

}  // namespace

Flops flops(const Operation& operation, Ledger ledger, bool first_layer) {
    if (const auto* fused = std::get_if<DualNorm>(&operation)) {
        return flops(fused->outer, ledger, first_layer) += flops(fused->inner, ledger, first_layer);
    }
    if (const auto* fused = std::get_if<PointwiseNorm>(&operation)) {
        return flops(fused->convolution, ledger, first_layer) +=
               flops(fused->norm, ledger, first_layer);
    }
    if (const auto* fused = std::get_if<NormPool>(&operation)) {
        return flops(fused->norm, ledger, first_layer) += flops(fused->pool, ledger, false);
    }
    switch (ledger) {
        case Ledger::table3:
            return std::visit(Table3{}, operation);
        case Ledger::two_mac:
            return std::visit(TwoMac{first_layer}, operation);
        case Ledger::aiperf:
            return std::visit(AiPerf{first_layer}, operation);
    }
    return {};
}

}  // namespace hpcai::ops
