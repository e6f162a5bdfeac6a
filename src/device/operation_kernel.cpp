// SPDX-License-Identifier: Apache-2.0
#include <hpcai/device/operation_kernel.hpp>

namespace hpcai::device {
namespace {

using ops::Pass;
using Passes = std::vector<Pass>;

struct PassesOf {
    const KernelOptions& options;

    bool trains() const { return options.mode == Mode::training; }
    /// The passes of operations with separate passes for the gradients of weights and input.
    Passes passes_with_weights() const {
        if (!trains()) return {Pass::prepare, Pass::forward};
        if (!options.needs_input_gradient) {
            return {Pass::prepare, Pass::forward, Pass::weight_gradient};
        }
        return {Pass::prepare, Pass::forward, Pass::weight_gradient, Pass::input_gradient};
    }
    Passes forward_and_backward_if(bool has_backward) const {
        if (!has_backward) return {Pass::forward};
        return {Pass::forward, Pass::input_gradient};
    }

    Passes operator()(const ops::InputNormalize&) const { return {Pass::forward}; }
    Passes operator()(const ops::Convolution&) const { return passes_with_weights(); }
    Passes operator()(const ops::Linear&) const { return passes_with_weights(); }
    Passes operator()(const ops::OneOf<ops::AllGather, ops::ReduceScatter> auto&) const {
        return forward_and_backward_if(trains() && options.needs_input_gradient);
    }
    template <typename Other>
    Passes operator()(const Other& op) const {
        return forward_and_backward_if(trains() && is_differentiable(op));
    }
};

}  // namespace

std::vector<Pass> passes_of(const ops::Operation& operation, const KernelOptions& options) {
    return std::visit(PassesOf{options}, operation);
}

}  // namespace hpcai::device
