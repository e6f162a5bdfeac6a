// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/graph/graph.hpp>

namespace hpcai::graph {

/// Identifies the draws of one parameter's initial values.
struct InitialDraw {
    std::uint64_t seed = 0;
    std::uint32_t model = 0;
    std::uint32_t index = 0;  // of the parameter in its graph
};

/// Returns the initial values of a parameter as a function of `draw`: filters N(0, 2 / fan out) (He
/// et al. 2015, eq. 14), linear weights N(0, 0.01^2) and biases 0 (Goyal et al. 2017, section 5.1),
/// normalization scales 1 or 0 (Parameter::starts_at_zero), shifts 0. A Parameter::deviation above
/// 0 replaces the standard deviation of filters and linear weights.
std::vector<float> initial_values(const Parameter& parameter, const InitialDraw& draw);

}  // namespace hpcai::graph
