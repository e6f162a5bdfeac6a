// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/graph/parameter_store.hpp>

namespace hpcai::training {

/// Initializes the parameters as a function of (seed, model): filters N(0, 2 / fan out) (He et al.
/// 2015, eq. 14), linear weights N(0, 0.01^2) and biases 0 (Goyal et al. 2017, section 5.1),
/// normalization scales 1 or 0 (graph::Parameter), shifts 0. A Parameter::deviation above 0
/// replaces the standard deviation of filters and linear weights.
void initialize(const graph::Graph& graph, std::uint64_t seed, std::uint32_t model,
                graph::ParameterStore& store);

}  // namespace hpcai::training
