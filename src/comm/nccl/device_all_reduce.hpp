// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
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

/// Sums over GPUs in the way and the format of AllReduceOptions: programs of
/// comm::AllReduceSchedule whose messages NCCL carries and whose terms kernels round and add. The
/// bits are those of make_exchange_reducer but for those of NaN, error feedback of int8 included.
/// `device` outlives it, and its memory what has been enqueued. Throws as NcclGroup and Device do.
class DeviceAllReduce {
public:
    /// `rank` is this one of the `size` ranks of the group.
    DeviceAllReduce(const AllReduceOptions& options, int rank, int size, device::Device& device);

    /// Once for the values of each sum, before the first is enqueued.
    void prepare(std::span<float> device_values);

    /// Enqueues a message from and to every rank that this one's programs speak with, and all
    /// kernels, so that neither connections nor kernels are first made in a step. Collective.
    void connect(NcclGroup& nccl, cudaStream_t stream);

    /// Returns when the sum of what was prepared is enqueued on `stream`, or recorded where that is
    /// being recorded. All sums use the same stream.
    void enqueue(NcclGroup& nccl, std::span<float> device_values, cudaStream_t stream);

    /// The step that ends next leaves no residual of error feedback.
    void leave_out_step(cudaStream_t stream);
    /// After a step's sums, or a recording with them, in the order of `stream`.
    void end_step(cudaStream_t stream);

    /// Have the contracts of ErrorFeedback, for values that were prepared.
    std::vector<float> residual_of(std::span<float> device_values) const;
    void set_residual(std::span<float> device_values, std::span<const float> residual);

    /// Up to the step that ended last.
    const SentBytes& sent() const { return sent_; }

private:
    using Block = std::unique_ptr<device::Memory>;
    struct Sum {
        std::span<float> values;
        AllReduceSchedule program;
        Block residual;  // of error feedback; null: none
        SentBytes sent;  // by one of it
    };

    const Sum& sum_of(std::span<float> device_values) const;
    void begin(const Sum& sum, const SumStep& step, cudaStream_t stream) const;
    void end(const Sum& sum, const SumStep& step, cudaStream_t stream) const;
    std::byte* wire() const { return static_cast<std::byte*>(wire_->data()); }
    int* is_left_out() const { return static_cast<int*>(left_out_->data()); }

    AllReduceOptions options_;
    int rank_;
    device::Device& device_;
    std::map<std::pair<const float*, std::size_t>, Sum> sums_;
    Block wire_;                // of every sum, one after the other
    Block left_out_;            // an int: one of the step's sums is not finite, or it was said
    bool has_begun_ = false;    // to enqueue sums
    bool counts_sums_ = false;  // of this step, one by one: no recording repeats them
    SentBytes of_recording_;
    SentBytes sent_;
};

}  // namespace hpcai::comm
