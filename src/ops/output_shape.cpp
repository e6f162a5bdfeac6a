// SPDX-License-Identifier: Apache-2.0
#include <hpcai/base/error.hpp>
#include <hpcai/ops/operation.hpp>

namespace hpcai::ops {
namespace {

std::int64_t window_positions(std::int64_t extent, std::int64_t kernel, std::int64_t stride,
                              std::int64_t padding) {
    ensure(kernel > 0 && stride > 0 && padding >= 0, "a window of {} with stride {} and padding {}",
           kernel, stride, padding);
    const std::int64_t room = extent + 2 * padding - kernel;
    ensure(room >= 0, "a window of {} does not fit an extent of {} with padding {}", kernel, extent,
           padding);
    return room / stride + 1;
}

void ensure_image(const Shape& input) {
    ensure(input.rank() == 4, "expected (N, H, W, C), got {}", to_string(input));
}

struct OutputShape {
    Shape operator()(const InputNormalize& op) const {
        ensure_image(op.input);
        return op.input;
    }
    Shape operator()(const Convolution& op) const {
        ensure_image(op.input);
        ensure(op.filters > 0, "a convolution of {} filters", op.filters);
        return {op.input[0], window_positions(op.input[1], op.kernel, op.stride, op.padding),
                window_positions(op.input[2], op.kernel, op.stride, op.padding), op.filters};
    }
    Shape operator()(const BatchNorm& op) const {
        ensure_image(op.input);
        ensure(op.statistics_samples == 0 ||
                   (op.statistics_samples > 0 && op.input[0] % op.statistics_samples == 0),
               "statistics over {} samples in a batch of {}", op.statistics_samples, op.input[0]);
        return op.input;
    }
    Shape operator()(const NormConvolution& op) const {
        ensure((*this)(op.norm) == op.convolution.input, "a convolution of {} behind a norm of {}",
               to_string(op.convolution.input), to_string(op.norm.input));
        return (*this)(op.convolution);
    }
    Shape operator()(const DualNorm& op) const {
        ensure((*this)(op.outer) == (*this)(op.inner), "the sum of norms of {} and {}",
               to_string(op.outer.input), to_string(op.inner.input));
        return op.outer.input;
    }
    Shape operator()(const Relu& op) const { return op.input; }
    Shape operator()(const Add& op) const { return op.input; }
    Shape operator()(const MaxPool& op) const {
        ensure_image(op.input);
        ensure(op.padding < op.kernel, "windows of {} lie wholly in a padding of {}", op.kernel,
               op.padding);
        return {op.input[0], window_positions(op.input[1], op.kernel, op.stride, op.padding),
                window_positions(op.input[2], op.kernel, op.stride, op.padding), op.input[3]};
    }
    Shape operator()(const GlobalAveragePool& op) const {
        ensure_image(op.input);
        return {op.input[0], op.input[3]};
    }
    Shape operator()(const Linear& op) const {
        ensure(op.input.rank() == 2, "expected (N, C), got {}", to_string(op.input));
        ensure(op.features > 0, "a linear layer of {} features", op.features);
        return {op.input[0], op.features};
    }
    Shape operator()(const SoftmaxCrossEntropy& op) const {
        ensure(op.input.rank() == 2, "expected (N, F), got {}", to_string(op.input));
        return op.input;
    }
};

struct Name {
    std::string_view operator()(const InputNormalize&) const { return "input_normalize"; }
    std::string_view operator()(const Convolution&) const { return "convolution"; }
    std::string_view operator()(const BatchNorm& op) const {
        if (op.add) return op.relu ? "batch_norm_add_relu" : "batch_norm_add";
        return op.relu ? "batch_norm_relu" : "batch_norm";
    }
    std::string_view operator()(const NormConvolution&) const { return "norm_convolution"; }
    std::string_view operator()(const DualNorm&) const { return "dual_norm"; }
    std::string_view operator()(const Relu&) const { return "relu"; }
    std::string_view operator()(const Add&) const { return "add"; }
    std::string_view operator()(const MaxPool&) const { return "max_pool"; }
    std::string_view operator()(const GlobalAveragePool&) const { return "global_average_pool"; }
    std::string_view operator()(const Linear&) const { return "linear"; }
    std::string_view operator()(const SoftmaxCrossEntropy&) const {
        return "softmax_cross_entropy";
    }
};

}  // namespace

Shape output_shape(const Operation& operation) {
    return std::visit(OutputShape{}, operation);
}

bool carries_sums(const Operation& operation) {
    if (const auto* op = std::get_if<NormConvolution>(&operation)) return op->convolution.sums;
    const auto* op = std::get_if<Convolution>(&operation);
    return op != nullptr && op->sums;
}

std::string_view name_of(const Operation& operation) {
    return std::visit(Name{}, operation);
}

}  // namespace hpcai::ops
