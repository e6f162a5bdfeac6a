// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <numeric>

#include <hpcai/graph/network.hpp>

namespace hpcai::graph {

Network::Network(Graph graph, device::Device& device, ParameterStore& store,
                 const NetworkOptions& options)
    : graph_(std::move(graph)), device_(device), options_(options) {
    step_scalars_ = device.allocate(sizeof(device::StepScalars));
    reset_step_scalars(1);
    build(store);
}

Network::Network(const Network& twin, ParameterStore& store)
    : graph_(twin.graph_),
      device_(twin.device_),
      options_(twin.options_),
      prepared_(twin.prepared_),
      step_scalars_(twin.step_scalars_) {
    build(store);
}

void Network::reset_step_scalars(float scale) {
    const device::StepScalars scalars{.loss_scale = scale};
    device_.upload(step_scalars(), std::as_bytes(std::span(&scalars, 1)));
}

device::StepScalars Network::read_step_scalars() const {
    device::StepScalars scalars;
    device_.synchronize();
    device_.download(std::as_writable_bytes(std::span(&scalars, 1)), step_scalars());
    return scalars;
}

Network::~Network() = default;

void Network::set_input(const std::string& name, std::span<const std::byte> bytes) {
    const std::span<std::byte> target = input(name);
    ensure(target.size() == bytes.size(), "input {}: expected {} bytes, got {}", name,
           target.size(), bytes.size());
    device_.enqueue_upload(target.data(), bytes);
}

std::span<std::byte> Network::input(const std::string& name) const {
    const auto found = inputs_.find(name);
    ensure(found != inputs_.end(), "the network has no input {}", name);
    return found->second;
}

std::vector<KernelCall> Network::calls() const {
    std::vector<KernelCall> all = other_copy_calls_;
    all.insert(all.end(), forward_calls_.begin(), forward_calls_.end());
    all.insert(all.end(), backward_calls_.begin(), backward_calls_.end());
    return all;
}

std::span<const std::byte> Network::value(const std::string& name) const {
    return values_[graph_.find(name)];
}

void Network::read_output(std::span<float> to) const {
    ensure(to.size_bytes() == output_.size(), "the network's output has {} bytes, expected {}",
           output_.size(), to.size_bytes());
    device_.download(std::as_writable_bytes(to), output_.data());
}

std::span<std::byte> Network::output_gradient(const std::string& name) const {
    const auto found = output_gradients_.find(name);
    ensure(found != output_gradients_.end(), "the network has no gradient of an output {}", name);
    return found->second;
}

std::span<const std::byte> Network::received_gradient(const std::string& name) const {
    const auto found = received_gradients_.find(name);
    ensure(found != received_gradients_.end(), "the network computes no gradient of {}", name);
    return found->second;
}

MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes) {
    constexpr std::size_t kOffsetAlignment = 64;
    std::vector<std::size_t> order(lifetimes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::ranges::greater(),
                             [&](std::size_t index) { return lifetimes[index].bytes; });
    MemoryPlan plan{std::vector<std::size_t>(lifetimes.size(), 0), 0};
    std::multimap<std::size_t, std::size_t> blocks;  // indices of placed tensors by offset
    for (const std::size_t index : order) {
        const std::size_t bytes = align_up(lifetimes[index].bytes, kOffsetAlignment);
        std::size_t& begin = plan.offsets[index];
        for (const auto& [other_begin, other] : blocks) {
            const Lifetime &a = lifetimes[index], &b = lifetimes[other];
            if (a.last < b.first || b.last < a.first) continue;
            if (begin + bytes <= other_begin) break;
            const std::size_t other_bytes = align_up(lifetimes[other].bytes, kOffsetAlignment);
            begin = std::max(begin, other_begin + other_bytes);
        }
        blocks.emplace(begin, index);
        plan.total_bytes = std::max(plan.total_bytes, begin + bytes);
    }
    return plan;
}

}  // namespace hpcai::graph
