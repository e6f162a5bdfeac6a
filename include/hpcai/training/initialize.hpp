// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/graph/parameter_store.hpp>

namespace hpcai::training {

/// Initializes all parameters as a function of (seed, model); see graph::initial_values().
void initialize(const graph::Graph& graph, std::uint64_t seed, std::uint32_t model,
                graph::ParameterStore& store);

}  // namespace hpcai::training
