// SPDX-License-Identifier: Apache-2.0
#include <hpcai/graph/initial_values.hpp>
#include <hpcai/training/initialize.hpp>

namespace hpcai::training {

void initialize(const graph::Graph& graph, std::uint64_t seed, std::uint32_t model,
                graph::ParameterStore& store) {
    for (std::size_t index = 0; index < graph.parameters().size(); ++index) {
        const auto draw = graph::InitialDraw{seed, model, static_cast<std::uint32_t>(index)};
        store.write(graph::initial_values(graph.parameters()[index], draw),
                    store.parameter(static_cast<graph::ParameterId>(index)));
    }
}

}  // namespace hpcai::training
