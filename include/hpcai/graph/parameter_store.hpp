// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/comm/gradient_buckets.hpp>
#include <hpcai/device/device.hpp>
#include <hpcai/graph/graph.hpp>

namespace hpcai::graph {

using comm::Range;

/// The training state of a model on one device: parameters, gradients and optimizer states as flat
/// fp32 buffers with one range per parameter, and the running statistics. Networks of the same
/// graph share it. Spans refer to device memory, which the host must not dereference: read() and
/// write() copy it.
class ParameterStore {
public:
    /// Initializes running variances to one and everything else to zero. `device` must outlive the
    /// store; `graph` need not.
    ParameterStore(const Graph& graph, device::Device& device, int optimizer_states = 1);

    std::span<float> parameters() { return span(*parameters_, elements_); }
    std::span<float> gradients() { return span(*gradients_, elements_); }
    /// The gradients, followed by this rank's status, which is all-reduced with them: infinity if
    /// the rank has failed, else 0.
    std::span<float> gradients_and_status() { return span(*gradients_, elements_ + 1); }
    void enqueue_status(float status) {
        device_.enqueue_upload(status_part().data(), std::as_bytes(std::span(&status, 1)));
    }
    float status() { return read(status_part()).front(); }
    Range status_range() const { return {elements_, elements_ + 1}; }
    int states() const { return static_cast<int>(states_.size()); }
    /// State `index` of the optimizer, in the order of device::OptimizerTensors.
    std::span<float> state(int index) {
        return span(*states_.at(static_cast<std::size_t>(index)), elements_);
    }
    /// The running means of all BatchNorms, then the running variances: (2, total channels).
    std::span<float> statistics() { return span(*statistics_, 2 * channels_); }

    Range range(ParameterId parameter) const {
        return ranges_.at(static_cast<std::size_t>(parameter));
    }
    const std::vector<Range>& ranges() const { return ranges_; }
    std::span<float> parameter(ParameterId id) { return part(parameters(), range(id)); }
    std::span<float> gradient(ParameterId id) { return part(gradients(), range(id)); }
    std::span<float> running_mean(std::int32_t index);      // (C), of Graph::statistics()[index]
    std::span<float> running_variance(std::int32_t index);  // (C), likewise

    /// Copies a span of the store to the host. Waits for the work enqueued on the device.
    std::vector<float> read(std::span<const float> part) const;
    /// Copies `values` to `part`, a span of the store with the same length.
    void write(std::span<const float> values, std::span<float> part);
    /// The number of write() calls to parameters().
    std::uint64_t parameter_writes() const { return parameter_writes_; }

private:
    std::span<float> status_part() { return gradients_and_status().subspan(elements_); }
    static std::span<float> span(device::Memory& memory, std::size_t elements) {
        return {static_cast<float*>(memory.data()), elements};
    }
    static std::span<float> part(std::span<float> all, Range range) {
        return all.subspan(range.begin, range.end - range.begin);
    }

    device::Device& device_;
    std::vector<Range> ranges_;             // per parameter
    std::vector<Range> statistics_ranges_;  // per BatchNorm, in channels
    std::size_t elements_ = 0;
    std::size_t channels_ = 0;
    std::uint64_t parameter_writes_ = 0;
    std::unique_ptr<device::Memory> parameters_, gradients_, statistics_;
    std::vector<std::unique_ptr<device::Memory>> states_;
};

}  // namespace hpcai::graph
