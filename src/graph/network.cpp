// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include <hpcai/graph/network.hpp>

namespace hpcai::graph {
namespace {

constexpr std::size_t kOffsetAlignment = 64;

bool lifetimes_overlap(const Lifetime& a, const Lifetime& b) {
    return a.first <= b.last && b.first <= a.last;
}

struct Block {
    std::size_t index;
    std::size_t begin, end;
};

/// Returns the lowest offset with `bytes` free bytes between blocks sorted by begin.
std::size_t lowest_free_offset(const std::vector<Block>& live, std::size_t bytes) {
    std::size_t offset = 0;
    for (const Block& other : live) {
        if (offset + bytes <= other.begin) break;
        offset = std::max(offset, other.end);
    }
    return offset;
}

}  // namespace

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

void Network::build(ParameterStore& store) {
    ensure(!options_.int8 || device_.has_int8(), "the device does not support int8");
    plan(store);
    std::size_t largest_input_bytes = 0;
    for (const auto& [name, memory] : inputs_) {
        largest_input_bytes = std::max(largest_input_bytes, memory.size());
    }
    device_.reserve_uploads(largest_input_bytes);
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
    std::vector<std::size_t> order(lifetimes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return lifetimes[a].bytes > lifetimes[b].bytes;
    });
    MemoryPlan plan{std::vector<std::size_t>(lifetimes.size(), 0), 0};
    std::vector<Block> blocks;  // sorted by begin
    for (const std::size_t index : order) {
        const std::size_t bytes = align_up(lifetimes[index].bytes, kOffsetAlignment);
        std::vector<Block> live;
        std::copy_if(blocks.begin(), blocks.end(), std::back_inserter(live),
                     [&](const Block& other) {
                         return lifetimes_overlap(lifetimes[index], lifetimes[other.index]);
                     });
        const std::size_t begin = lowest_free_offset(live, bytes);
        const Block entry{index, begin, begin + bytes};
        blocks.insert(
            std::upper_bound(blocks.begin(), blocks.end(), entry,
                             [](const Block& a, const Block& b) { return a.begin < b.begin; }),
            entry);
        plan.offsets[index] = begin;
        plan.total_bytes = std::max(plan.total_bytes, entry.end);
    }
    return plan;
}

}  // namespace hpcai::graph
