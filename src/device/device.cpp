// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/error.hpp>
#include <hpcai/base/process.hpp>
#include <hpcai/device/device.hpp>

namespace hpcai::device {
namespace {

class HostTimeline final : public Timeline {
public:
    void mark() override { marks_.push_back(watch_.seconds()); }
    std::vector<double> seconds() const override {
        std::vector<double> intervals;
        for (std::size_t i = 1; i < marks_.size(); ++i)
            intervals.push_back(marks_[i] - marks_[i - 1]);
        return intervals;
    }

private:
    Stopwatch watch_;
    std::vector<double> marks_;
};

}  // namespace

std::string_view name_of(const Precision& precision) {
    if (precision.compute == tensor::DType::f16) return precision.is_pure ? "fp16" : "mixed";
    if (precision.int8) return "int8";
    return precision.tf32 ? "tf32" : tensor::name_of(precision.compute);
}

std::int64_t Device::memory_bytes() const {
    return host_memory_bytes();
}

void Device::resize_crops(const ViewBatch& /*batch*/) {
    throw Error(ExitCode::internal, "this device cannot resize images");
}

std::unique_ptr<Timeline> Device::make_timeline() {
    return std::make_unique<HostTimeline>();
}

std::unique_ptr<Recording> Device::record(const std::function<void()>& /*enqueue*/) {
    throw Error(ExitCode::internal, "this device cannot capture work as a graph");
}

int state_count(const OptimizerRule& rule) {
    return std::visit([](const auto& described) { return described.kStates; }, rule);
}

void check(const Optimizer& optimizer, const OptimizerTensors& tensors) {
    const std::size_t elements = tensors.parameters.size();
    ensure(tensors.gradients.size() == elements, "the optimizer has {} parameters but {} gradients",
           elements, tensors.gradients.size());
    for (int state = 0; state < state_count(optimizer.rule); ++state) {
        const std::size_t size = tensors.states[state].size();
        ensure(size == elements, "the optimizer has {} parameters but {} elements of state {}",
               elements, size, state);
    }
    std::size_t previous_end = 0;
    for (const Optimizer::Range& range : optimizer.ranges) {
        ensure(range.begin % 8 == 0 && previous_end <= range.begin && range.begin <= range.end &&
                   range.end <= elements,
               "optimizer range {} to {}: expected a multiple of 8 from {} on, and an end up to {}",
               range.begin, range.end, previous_end, elements);
        previous_end = range.end;
    }
}

void sum_over_shards(ShardExchange& exchange, std::span<double> values) {
    if (values.empty()) return;
    const std::vector<double> own(values.begin(), values.end());
    std::vector<double> received(values.size());
    std::ranges::fill(values, 0.0);
    const auto bytes = [&](int) { return values.size_bytes(); };
    exchange.exchange(
        {.bytes_to = bytes,
         .bytes_from = bytes,
         .write = [&](int,
                      std::span<std::byte> to) { std::memcpy(to.data(), own.data(), to.size()); },
         .read =
             [&](int, std::span<const std::byte> from) {
                 if (!from.empty()) std::memcpy(received.data(), from.data(), from.size());
                 const std::vector<double>& addend = from.empty() ? own : received;
                 for (std::size_t i = 0; i < values.size(); ++i) values[i] += addend[i];
             }});
}

}  // namespace hpcai::device
