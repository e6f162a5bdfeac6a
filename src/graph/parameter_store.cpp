// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <hpcai/graph/parameter_store.hpp>

namespace hpcai::graph {
namespace {

// Whole cache lines, so that vector loops over a parameter start aligned.
constexpr std::size_t kAlignment = 16;

std::size_t aligned(std::size_t elements) {
    return (elements + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

ParameterStore::ParameterStore(const Graph& graph, device::Device& device) {
    for (const Parameter& parameter : graph.parameters()) {
        const auto size = static_cast<std::size_t>(parameter.shape.elements());
        ranges_.push_back({elements_, elements_ + size});
        elements_ += aligned(size);
    }
    for (const NormStatistics& statistics : graph.statistics()) {
        const auto size = static_cast<std::size_t>(statistics.channels);
        statistics_ranges_.push_back({channels_, channels_ + size});
        channels_ += size;
    }
    parameters_ = device.allocate(elements_ * sizeof(float));
    gradients_ = device.allocate((elements_ + 1) * sizeof(float));
    momentum_ = device.allocate(elements_ * sizeof(float));
    statistics_ = device.allocate(2 * channels_ * sizeof(float));
    const auto variances = statistics().subspan(channels_);
    std::fill(variances.begin(), variances.end(), 1.0f);
}

std::span<float> ParameterStore::running_mean(std::int32_t index) {
    return part(statistics(), statistics_ranges_.at(static_cast<std::size_t>(index)));
}

std::span<float> ParameterStore::running_variance(std::int32_t index) {
    return part(statistics().subspan(channels_),
                statistics_ranges_.at(static_cast<std::size_t>(index)));
}

}  // namespace hpcai::graph
