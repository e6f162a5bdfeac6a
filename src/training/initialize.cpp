// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <hpcai/base/philox.hpp>
#include <hpcai/training/initialize.hpp>

namespace hpcai::training {
namespace {

using graph::ParameterKind;

double deviation_of(const graph::Parameter& parameter) {
    if (parameter.deviation > 0) return parameter.deviation;
    if (parameter.kind == ParameterKind::linear_weight) return 0.01;  // Goyal et al. 2017, 5.1
    const tensor::Shape& shape = parameter.shape;
    return std::sqrt(2.0 / static_cast<double>(shape[0] * shape[1] * shape[2]));
}

}  // namespace

void initialize(const graph::Graph& graph, std::uint64_t seed, std::uint32_t model,
                graph::ParameterStore& store) {
    for (std::size_t index = 0; index < graph.parameters().size(); ++index) {
        const graph::Parameter& parameter = graph.parameters()[index];
        const std::span<float> target = store.parameter(static_cast<graph::ParameterId>(index));
        const bool is_one =
            parameter.kind == ParameterKind::norm_scale && !parameter.starts_at_zero;
        std::vector<float> values(target.size(), is_one ? 1.0f : 0.0f);
        if (parameter.kind == ParameterKind::filters ||
            parameter.kind == ParameterKind::linear_weight) {
            const double deviation = deviation_of(parameter);
            const auto rows = static_cast<std::size_t>(parameter.shape[0]);
            const std::size_t columns = values.size() / rows;
            for (std::size_t row = 0; row < rows; ++row) {
                // Each filter or feature has its own stream, because a stream has limited length.
                CounterStream stream(seed, RandomPurpose::initialization, model,
                                     static_cast<std::uint32_t>(index),
                                     static_cast<std::uint32_t>(row));
                for (float& value : std::span(values).subspan(row * columns, columns)) {
                    value = static_cast<float>(deviation * stream.normal());
                }
            }
        }
        store.write(values, target);
    }
}

}  // namespace hpcai::training
