// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <hpcai/base/philox.hpp>
#include <hpcai/training/initialize.hpp>

namespace hpcai::training {
namespace {

using graph::ParameterKind;

constexpr double kLinearDeviation = 0.01;  // Goyal et al. 2017, section 5.1

double deviation_of(const graph::Parameter& parameter) {
    if (parameter.deviation > 0) return parameter.deviation;
    if (parameter.kind == ParameterKind::linear_weight) return kLinearDeviation;
    const tensor::Shape& shape = parameter.shape;
    return std::sqrt(2.0 / static_cast<double>(shape[0] * shape[1] * shape[2]));
}

/// Random draws with one stream for each filter or feature, because a stream has limited length.
struct Draw {
    std::uint64_t seed;
    std::uint32_t model;
    std::uint32_t parameter;

    void normal(double deviation, std::int64_t rows, std::span<float> values) const {
        const std::size_t columns = values.size() / static_cast<std::size_t>(rows);
        for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
            CounterStream stream(seed, RandomPurpose::initialization, model, parameter,
                                 static_cast<std::uint32_t>(row));
            for (float& value : values.subspan(row * columns, columns)) {
                value = static_cast<float>(deviation * stream.normal());
            }
        }
    }
};

}  // namespace

void initialize(const graph::Graph& graph, std::uint64_t seed, std::uint32_t model,
                graph::ParameterStore& store) {
    for (std::size_t index = 0; index < graph.parameters().size(); ++index) {
        const graph::Parameter& parameter = graph.parameters()[index];
        const std::span<float> target = store.parameter(static_cast<graph::ParameterId>(index));
        std::vector<float> values(target.size());
        const Draw draw{seed, model, static_cast<std::uint32_t>(index)};
        switch (parameter.kind) {
            case ParameterKind::filters:
            case ParameterKind::linear_weight:
                draw.normal(deviation_of(parameter), parameter.shape[0], values);
                break;
            case ParameterKind::norm_scale:
                std::fill(values.begin(), values.end(), parameter.starts_at_zero ? 0.0f : 1.0f);
                break;
            case ParameterKind::norm_shift:
            case ParameterKind::bias:
                break;
        }
        store.write(values, target);
    }
}

}  // namespace hpcai::training
