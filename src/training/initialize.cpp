// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <hpcai/base/philox.hpp>
#include <hpcai/training/initialize.hpp>

namespace hpcai::training {
namespace {

using graph::ParameterKind;

constexpr double kLinearDeviation = 0.01;

double filter_deviation(const tensor::Shape& shape) {
    return std::sqrt(2.0 / static_cast<double>(shape[0] * shape[1] * shape[2]));
}

void draw_normal(CounterStream stream, double deviation, std::span<float> values) {
    for (float& value : values) value = static_cast<float>(deviation * stream.normal());
}

}  // namespace

void initialize(const graph::Graph& graph, std::uint64_t seed, std::uint32_t model,
                graph::ParameterStore& store) {
    for (std::size_t index = 0; index < graph.parameters().size(); ++index) {
        const graph::Parameter& parameter = graph.parameters()[index];
        const std::span<float> values = store.parameter(static_cast<graph::ParameterId>(index));
        const CounterStream stream(seed, RandomPurpose::initialization, model,
                                   static_cast<std::uint32_t>(index));
        switch (parameter.kind) {
            case ParameterKind::filters:
                draw_normal(stream, filter_deviation(parameter.shape), values);
                break;
            case ParameterKind::linear_weight:
                draw_normal(stream, kLinearDeviation, values);
                break;
            case ParameterKind::norm_scale:
                std::fill(values.begin(), values.end(), parameter.starts_at_zero ? 0.0f : 1.0f);
                break;
            case ParameterKind::norm_shift:
            case ParameterKind::bias:
                std::fill(values.begin(), values.end(), 0.0f);
                break;
        }
    }
}

}  // namespace hpcai::training
