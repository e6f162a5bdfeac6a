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

/// All-reduces over GPUs by AllReduceSchedule, with messages of NCCL and kernels that round and
/// add. Bits (except those of NaN) and error feedback of int8 are as with
/// make_point_to_point_reducer. `device` must outlive this object, which must outlive the work that
/// it enqueues. Throws as NcclGroup and Device do.
class DeviceAllReduce {
public:
    /// `rank` is this rank in the group of `size` ranks.
    DeviceAllReduce(const AllReduceOptions& options, int rank, int size, device::Device& device);

    /// Call it once for the values of each all-reduce, before the first one is enqueued.
    void prepare(std::span<float> device_values);

    /// Enqueues a message to and from every peer and runs all kernels once, so that no step creates
    /// connections or loads kernels. Collective.
    void connect(NcclGroup& nccl, cudaStream_t stream);

    /// Enqueues the all-reduce of prepared values on `stream`, or records it if `stream` is being
    /// recorded. All calls must use the same stream.
    void enqueue(NcclGroup& nccl, std::span<float> device_values, cudaStream_t stream);

    /// Clears the residuals of error feedback at the end of this step.
    void skip_step(cudaStream_t stream);
    /// Call it after each step, also of a recording, on a stream that waits for the all-reduces.
    void end_step(cudaStream_t stream);

    /// As in GradientReducer, for values that were prepared.
    std::vector<float> residual_of(std::span<float> device_values) const;
    void set_residual(std::span<float> device_values, std::span<const float> residual);

    /// Bytes of all steps that have ended and of all-reduces enqueued since without a recording.
    const SentBytes& sent() const { return sent_; }

private:
    using Block = std::unique_ptr<device::Memory>;
    struct Sum {
        std::span<float> values;
        AllReduceSchedule schedule;
        Block residual;  // of error feedback; null: none is kept
        SentBytes sent;  // by one execution
    };

    const Sum& sum_of(std::span<float> device_values) const;
    void begin(const Sum& sum, const ScheduleStep& step, cudaStream_t stream) const;
    void end(const Sum& sum, const ScheduleStep& step, cudaStream_t stream) const;
    std::byte* wire() const { return static_cast<std::byte*>(wire_->data()); }
    int* left_out_flag() const { return static_cast<int*>(left_out_->data()); }

    AllReduceOptions options_;
    int rank_;
    device::Device& device_;
    std::map<std::pair<const float*, std::size_t>, Sum> sums_;
    Block wire_;                // shared by all all-reduces
    Block left_out_;            // int flag: a sum is not finite or skip_step() ran
    bool has_begun_ = false;    // all-reduces were enqueued
    bool counts_sums_ = false;  // this step's all-reduces were counted; else a recording ran
    SentBytes of_recording_;    // by one run of the recording
    SentBytes sent_;
};

}  // namespace hpcai::comm
