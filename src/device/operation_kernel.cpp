// SPDX-License-Identifier: Apache-2.0
#include <hpcai/base/error.hpp>
#include <hpcai/device/operation_kernel.hpp>

namespace hpcai::device {

using ops::Pass;

std::vector<Pass> passes_of(const ops::Operation& operation, const KernelOptions& options) {
    const bool has_weights = ops::is_one_of<ops::Convolution, ops::Linear>(operation);
    std::vector<Pass> passes;
    if (has_weights) passes.push_back(Pass::prepare);
    passes.push_back(Pass::forward);
    if (options.mode != Mode::training) return passes;
    if (has_weights) passes.push_back(Pass::weight_gradient);
    // In other operations, Pass::input_gradient also computes the gradients of the parameters.
    const bool computes_input_gradients_only =
        has_weights || ops::is_one_of<ops::AllGather, ops::ReduceScatter>(operation);
    const bool has_backward =
        computes_input_gradients_only ? options.needs_input_gradient : is_differentiable(operation);
    if (has_backward && !std::holds_alternative<ops::InputNormalize>(operation)) {
        passes.push_back(Pass::input_gradient);
    }
    return passes;
}

void rethrow_naming(const ops::Operation& operation, Pass pass, const std::exception& error) {
    if (dynamic_cast<const Error*>(&error) != nullptr) throw;
    throw Error(ExitCode::internal, fmt::format("{}, {} pass: {}", ops::name_of(operation),
                                                name_of(pass), to_error(error).what()));
}

}  // namespace hpcai::device
