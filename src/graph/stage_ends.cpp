// SPDX-License-Identifier: Apache-2.0
#include <hpcai/base/error.hpp>

#include "network_builder.hpp"

/// Functions of the builder for pipeline stages.
namespace hpcai::graph {

/// The caller reads outputs between the forward and the backward pass.
void Network::Builder::touch_outputs() {
    for (const ValueId output : graph_.outputs()) touch(values_[output]);
}

void Network::Builder::allocate_output_gradients() {
    for (const ValueId output : graph_.outputs()) {
        if (!graph_.needs_gradient(output)) continue;
        const TensorId gradient = new_tensor(value_bytes(output, true));
        touch(gradient);
        output_gradients_[output] = gradient;
        gradients_[output].push_back(gradient);
    }
}

void Network::Builder::finish_received_gradients() {
    for (std::size_t index = 0; index < graph_.values().size(); ++index) {
        const auto value = static_cast<ValueId>(index);
        if (!graph_.value(value).is_received || !graph_.needs_gradient(value)) continue;
        sum_gradients(value, 1);
        ensure(gradients_[index].size() == 1, "no step computes the gradient of {}",
               graph_.value(value).name);
        received_gradients_[value] = gradients_[index].front();
    }
}

}  // namespace hpcai::graph
