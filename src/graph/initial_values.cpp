// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <span>

#include <hpcai/base/philox.hpp>
#include <hpcai/graph/initial_values.hpp>

namespace hpcai::graph {
namespace {

double deviation_of(const Parameter& parameter) {
    if (parameter.deviation > 0) return parameter.deviation;
    if (parameter.kind == ParameterKind::linear_weight) return 0.01;  // Goyal et al. 2017, 5.1
    const tensor::Shape& shape = parameter.shape;
    return std::sqrt(2.0 / static_cast<double>(shape[0] * shape[1] * shape[2]));
}

}  // namespace

std::vector<float> initial_values(const Parameter& parameter, const InitialDraw& draw) {
    const bool is_one = parameter.kind == ParameterKind::norm_scale && !parameter.starts_at_zero;
    std::vector<float> values(static_cast<std::size_t>(parameter.shape.elements()),
                              is_one ? 1.0f : 0.0f);
    if (parameter.kind != ParameterKind::filters &&
        parameter.kind != ParameterKind::linear_weight) {
        return values;
    }
    const double deviation = deviation_of(parameter);
    const auto rows = static_cast<std::size_t>(parameter.shape[0]);
    const std::size_t columns = values.size() / rows;
    for (std::size_t row = 0; row < rows; ++row) {
        // Each filter or feature has its own stream, because a stream has limited length.
        CounterStream stream(draw.seed, RandomPurpose::initialization, draw.model, draw.index,
                             static_cast<std::uint32_t>(row));
        for (float& value : std::span(values).subspan(row * columns, columns)) {
            value = static_cast<float>(deviation * stream.normal());
        }
    }
    return values;
}

}  // namespace hpcai::graph
