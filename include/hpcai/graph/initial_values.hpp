// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/graph/graph.hpp>

namespace hpcai::graph {

/// Identifies the draws of one parameter's initial values.
struct InitialDraw {
    std::uint64_t seed = 0;
    std::uint32_t model = 0;  // number of the base model
    std::uint32_t index = 0;  // of the parameter in its graph
};

/// Returns the initial values of a parameter as a function of `draw`. Filters are drawn from
/// N(0, 2 / fan out), as in He et al. 2015, eq. 14. Linear weights are drawn from N(0, 0.01^2) and
/// biases are 0, as in Goyal et al. 2017, section 5.1. Normalization scales are 1, or 0 with
/// Parameter::starts_at_zero; shifts are 0. A Parameter::deviation above 0 replaces the standard
/// deviation of filters and linear weights.
std::vector<float> initial_values(const Parameter& parameter, const InitialDraw& draw);

}  // namespace hpcai::graph
