// SPDX-License-Identifier: Apache-2.0
#include <hpcai/graph/parameter_store.hpp>

namespace hpcai::graph {

// Each parameter begins at a cache line of 64 bytes, so that vector loops over it are aligned.
constexpr std::size_t kElementAlignment = 16;  // in fp32 elements

ParameterStore::ParameterStore(const Graph& graph, device::Device& device, int optimizer_states)
    : device_(device) {
    for (const Parameter& parameter : graph.parameters()) {
        const auto size = static_cast<std::size_t>(parameter.shape.elements());
        ranges_.push_back({elements_, elements_ + size});
        elements_ += align_up(size, kElementAlignment);
    }
    for (const NormStatistics& norm : graph.statistics()) {
        const auto size = static_cast<std::size_t>(norm.channels);
        statistics_ranges_.push_back({channels_, channels_ + size});
        channels_ += size;
    }
    parameters_ = device.allocate(elements_ * sizeof(float));
    gradients_ = device.allocate((elements_ + 1) * sizeof(float));
    for (int state = 0; state < optimizer_states; ++state) {
        states_.push_back(device.allocate(elements_ * sizeof(float)));
    }
    statistics_ = device.allocate(2 * channels_ * sizeof(float));
    write(std::vector<float>(channels_, 1.0f), statistics().subspan(channels_));
}

std::vector<float> ParameterStore::read(std::span<const float> part) const {
    std::vector<float> values(part.size());
    device_.synchronize();
    device_.download(std::as_writable_bytes(std::span(values)), part.data());
    return values;
}

void ParameterStore::write(std::span<const float> values, std::span<float> part) {
    ensure(values.size() == part.size(), "write to the parameter store: expected {} values, got {}",
           part.size(), values.size());
    device_.upload(part.data(), std::as_bytes(values));
    const std::span<const float> all = parameters();
    const bool are_parameters = part.data() >= all.data() && part.data() < all.data() + all.size();
    if (are_parameters) ++parameter_writes_;
}

std::span<float> ParameterStore::running_mean(std::int32_t index) {
    return part(statistics(), statistics_ranges_.at(static_cast<std::size_t>(index)));
}

std::span<float> ParameterStore::running_variance(std::int32_t index) {
    return part(statistics().subspan(channels_),
                statistics_ranges_.at(static_cast<std::size_t>(index)));
}

}  // namespace hpcai::graph
