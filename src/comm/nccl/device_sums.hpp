// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include <cuda_runtime_api.h>

#include "hpcai/comm/gradient_reducer.hpp"
#include "hpcai/comm/sum_program.hpp"
#include "nccl_group.hpp"

namespace hpcai::comm {

/// A block of device memory.
class DeviceBlock {
public:
    explicit DeviceBlock(std::size_t bytes);
    ~DeviceBlock();
    DeviceBlock(const DeviceBlock&) = delete;
    DeviceBlock& operator=(const DeviceBlock&) = delete;

    /// null where it has no bytes.
    std::byte* data() const { return data_; }
    std::size_t bytes() const { return bytes_; }
    bool empty() const { return bytes_ == 0; }
    std::span<float> floats() const {
        return {reinterpret_cast<float*>(data_), bytes_ / sizeof(float)};
    }

private:
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
};

/// Sums over GPUs in the way and the format of SumOptions: programs of comm::SumProgram whose
/// messages NCCL carries and whose terms kernels round and add. The bits are those of
/// make_exchange_reducer. Throws as NcclGroup; the memory of a sum is had when it is first
/// enqueued, which must not be in a recording.
class DeviceSums {
public:
    DeviceSums(const SumOptions& options, int rank);

    /// Returns when the sum of `device_values`, the same ones in all steps, is enqueued on
    /// `stream`, or recorded where that is being recorded.
    void enqueue(NcclGroup& nccl, std::span<float> device_values, cudaStream_t stream);

    /// The step that ends next leaves no residual of error feedback.
    void leave_out_step(cudaStream_t stream);
    /// After a step's sums, or a recording with them, in the order of `stream`.
    void end_step(cudaStream_t stream);

    /// Up to the step that ended last.
    const SentBytes& sent() const { return sent_; }

private:
    struct Sum {
        Sum(const SumOptions& options, int rank, std::span<float> device_values);

        std::span<float> values;
        SumProgram program;
        DeviceBlock wire;
        DeviceBlock residual;  // of error feedback
        SentBytes sent;        // by one of it
    };

    Sum& sum_of(std::span<float> device_values);
    void begin(const Sum& sum, const SumStep& step, cudaStream_t stream) const;
    void end(const Sum& sum, const SumStep& step, cudaStream_t stream) const;

    SumOptions options_;
    int rank_;
    std::map<std::pair<const float*, std::size_t>, std::unique_ptr<Sum>> sums_;
    DeviceBlock is_left_out_;  // an int: one of the step's sums is not finite, or it was said
    SentBytes of_step_;        // of the sums enqueued since the last step's end
    SentBytes of_recording_;   // of the last step whose sums were enqueued one by one
    SentBytes sent_;
};

}  // namespace hpcai::comm
