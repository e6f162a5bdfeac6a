// SPDX-License-Identifier: Apache-2.0
#include "acceptance.hpp"

#include "cudnn_choice.hpp"

namespace hpcai::device::cuda {
namespace {

using P = ConvolutionPass;

/// Of other numbers of channels too little is known, and no network that is to be fast has them.
bool fills_vectors(std::int64_t channels) {
    return channels % 8 == 0;
}

bool spans_batch(const ops::BatchNorm& op) {
    return op.statistics_samples == 0 || op.statistics_samples == op.input[0];
}

}  // namespace

bool Acceptance::operator()(const ops::Operation& operation, const KernelOptions& options) {
    if (options.mode != Mode::training) return false;
    return std::visit([&](const auto& op) { return accepts(op, options); }, operation);
}

bool Acceptance::accepts(const ops::Convolution& op, const KernelOptions& options) {
    if (!op.sums || !fills_vectors(op.filters)) return false;
    const ConvolutionShape shape = convolution_shape(op, options);
    const auto [known, is_new] = known_.try_emplace("sums " + to_string(shape));
    if (is_new) known->second = has_plan(shape, P::forward_with_statistics, context_);
    return known->second;
}

bool Acceptance::accepts(const ops::BatchNorm& op, const KernelOptions&) {
    return op.from_sums && spans_batch(op) && fills_vectors(op.input[3]);
}

bool Acceptance::accepts(const ops::NormConvolution& op, const KernelOptions& options) {
    const ops::Convolution& convolution = op.convolution;
    if (!convolution.sums || !options.needs_input_gradient || !spans_batch(op.norm)) return false;
    if (!fills_vectors(convolution.input[3]) || !fills_vectors(convolution.filters)) return false;
    const ConvolutionShape shape = convolution_shape(convolution, options);
    const auto [known, is_new] = known_.try_emplace("norm " + to_string(shape));
    if (is_new) {
        known->second = has_plan(shape, P::normalized_forward_with_statistics, context_) &&
                        has_plan(shape, P::normalized_weight_gradient, context_);
    }
    return known->second;
}

bool Acceptance::accepts(const ops::DualNorm& op, const KernelOptions&) {
    return spans_batch(op.outer) && spans_batch(op.inner) && fills_vectors(op.outer.input[3]);
}

}  // namespace hpcai::device::cuda
