// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

namespace hpcai::ops {

/// The passes of an operation in a training step.
enum class Pass {
    prepare,          // working copies of the parameters from their fp32 masters
    forward,          // output from inputs
    weight_gradient,  // parameter gradients from the output gradient: Convolution and Linear
    input_gradient,   // input gradients, and parameter gradients of the other operations
};

constexpr std::string_view name_of(Pass pass) {
    constexpr std::array kNames{"prepare", "forward", "weight_gradient", "input_gradient"};
    return kNames.at(static_cast<std::size_t>(pass));
}

}  // namespace hpcai::ops
