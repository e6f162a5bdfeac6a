// SPDX-License-Identifier: Apache-2.0
#include <hpcai/device/operation_kernel.hpp>

namespace hpcai::device {
namespace {

using ops::Pass;
using Passes = std::vector<Pass>;

struct PassesOf {
    const KernelOptions& options;

    bool trains() const { return options.mode == Mode::training; }
    /// Where filters have a pass of their own.
    Passes with_filters() const {
        if (!trains()) return {Pass::prepare, Pass::forward};
        if (!options.needs_input_gradient) {
            return {Pass::prepare, Pass::forward, Pass::weight_gradient};
        }
        return {Pass::prepare, Pass::forward, Pass::weight_gradient, Pass::input_gradient};
    }
    Passes backward_if(bool goes_back) const {
        if (!goes_back) return {Pass::forward};
        return {Pass::forward, Pass::input_gradient};
    }

    Passes operator()(const ops::InputNormalize&) const { return {Pass::forward}; }
    Passes operator()(const ops::Convolution&) const { return with_filters(); }
    Passes operator()(const ops::Linear&) const { return with_filters(); }
    Passes operator()(const ops::NormConvolution&) const {
        return {Pass::prepare, Pass::forward, Pass::input_gradient};
    }
    Passes operator()(const ops::AllGather&) const {
        return backward_if(trains() && options.needs_input_gradient);
    }
    Passes operator()(const ops::ReduceScatter&) const {
        return backward_if(trains() && options.needs_input_gradient);
    }
    template <typename Other>
    Passes operator()(const Other& op) const {
        return backward_if(trains() && is_differentiable(op));
    }
};

struct MaxOutputGradients {
    std::size_t operator()(const ops::BatchNorm&) const { return 2; }
    std::size_t operator()(const ops::DualNorm&) const { return 2; }
    std::size_t operator()(const ops::GroupNorm&) const { return 2; }
    std::size_t operator()(const ops::Bias&) const { return 2; }
    std::size_t operator()(const ops::UpsampleAdd&) const { return 2; }
    std::size_t operator()(const ops::Relu&) const { return 2; }
    std::size_t operator()(const ops::Add&) const { return 2; }
    std::size_t operator()(const ops::Linear& op) const { return op.relu ? 2 : 1; }
    template <typename Other>
    std::size_t operator()(const Other&) const {
        return 1;
    }
};

}  // namespace

std::vector<Pass> passes_of(const ops::Operation& operation, const KernelOptions& options) {
    return std::visit(PassesOf{options}, operation);
}

std::size_t max_output_gradients(const ops::Operation& operation) {
    return std::visit(MaxOutputGradients{}, operation);
}

}  // namespace hpcai::device
