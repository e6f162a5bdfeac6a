// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include <hpcai/comm/all_reduce_schedule.hpp>
#include <hpcai/comm/gradient_reducer.hpp>
#include <hpcai/device/device.hpp>

#include "nccl_group.hpp"

namespace hpcai::comm {

/// All-reduces over GPUs by AllReduceSchedule, with NCCL messages and kernels that round and add.
/// Sums (except the bits of NaN) and error feedback of int8 equal those of
/// make_point_to_point_reducer. `device` must outlive this object, which must outlive the work that
/// it enqueues. Throws as NcclGroup and Device do.
class DeviceAllReduce {
public:
    /// `rank` is this rank in the group of `size` ranks.
    DeviceAllReduce(const AllReduceOptions& options, int rank, int size, device::Device& device);

    /// Call it once for the values of each all-reduce, before the first all-reduce is enqueued.
    void prepare(std::span<float> device_values);

    /// Enqueues a message to and from every peer and runs all kernels once, so that no step creates
    /// connections or loads kernels. Collective.
    void connect(NcclGroup& nccl, cudaStream_t stream);

    /// Enqueues the all-reduce of prepared values on `stream`, or captures it while `stream`
    /// captures a CUDA graph. All calls must use the same stream.
    void enqueue(NcclGroup& nccl, std::span<float> device_values, cudaStream_t stream);

    /// Makes end_step() clear the residuals of error feedback.
    void skip_step(cudaStream_t stream);
    /// Call it after each step, captured or not, on a stream that waits for the all-reduces.
    void end_step(cudaStream_t stream);

    /// As in GradientReducer, for values that were prepared.
    std::vector<float> residual_of(std::span<float> device_values) const;
    void set_residual(std::span<float> device_values, std::span<const float> residual);

    /// Returns the bytes sent in ended steps and in later all-reduces that were not captured.
    const SentBytes& sent() const { return sent_; }

private:
    using Buffer = std::unique_ptr<device::Memory>;
    struct Sum {
        std::span<float> values;
        AllReduceSchedule schedule;
        Buffer residual;  // of error feedback; null: none
        SentBytes sent;   // by this rank in one all-reduce
    };

    const Sum& find_sum(std::span<float> device_values) const;
    void encode(const Sum& sum, const ScheduleStep& step, cudaStream_t stream) const;
    void decode(const Sum& sum, const ScheduleStep& step, cudaStream_t stream) const;
    std::byte* wire() const { return static_cast<std::byte*>(wire_->data()); }
    int* skip_flag() const { return static_cast<int*>(skip_flag_->data()); }

    AllReduceOptions options_;
    int rank_;
    device::Device& device_;
    std::map<std::pair<const float*, std::size_t>, Sum> sums_;
    Buffer wire_;                    // used by every all-reduce
    Buffer skip_flag_;               // int: a sum is not finite or skip_step() was called
    bool has_enqueued_ = false;      // all-reduces were enqueued
    bool has_counted_step_ = false;  // sent_ has this step; false: the step may replay a graph
    SentBytes sent_per_recording_;   // bytes sent by one replay of the CUDA graph
    SentBytes sent_;
};

}  // namespace hpcai::comm
