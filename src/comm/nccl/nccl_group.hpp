// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <future>
#include <optional>
#include <span>
#include <string>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <hpcai/comm/all_reduce_schedule.hpp>
#include <hpcai/comm/nccl_reducer.hpp>

#include "cuda_status.hpp"

namespace hpcai::comm {

/// Messages that are under way together, from and to one buffer in device memory.
struct DeviceMessages {
    std::span<const WireMessage> sends;
    std::span<const WireMessage> receives;
    std::byte* wire = nullptr;
};

/// Throws Error(internal) with what was done and the error of NCCL, unless `status` is ncclSuccess.
void check_nccl(ncclResult_t status, const char* what);

/// Owns an NCCL communicator whose calls never block: this class waits for them, with a deadline
/// and an eye on failures that the ranks announce. What makes a wait end in a throw also aborts the
/// communicator, so that kernels that wait for other ranks leave the GPU.
class NcclGroup {
public:
    /// Not started. For the current device.
    explicit NcclGroup(const NcclReducerOptions& options);
    ~NcclGroup() { end(); }
    NcclGroup(const NcclGroup&) = delete;
    NcclGroup& operator=(const NcclGroup&) = delete;

    /// Collective; once. When it fails on any rank, every rank throws the same Error.
    void start();

    /// Returns when the sum is enqueued on `stream`, or recorded where that is being recorded.
    void enqueue_sum(std::span<float> device_values, cudaStream_t stream);
    /// The same of messages. Between two ranks they go in the order in which they are enqueued.
    void enqueue_exchange(const DeviceMessages& messages, cudaStream_t stream);
    /// Makes connections by a first exchange, on `stream`; returns when it is done, which has the
    /// time of a start.
    void connect(const DeviceMessages& messages, cudaStream_t stream);

    /// Returns once `is_done`. Throws, too, when NCCL has noticed a failure by itself.
    void wait_until(const std::function<bool()>& is_done, const char* what, double seconds);

    /// Returns at once.
    void abort() noexcept;

    /// Ends the communicator together with the other ranks or, after a failure, alone; whether all
    /// of its work has left the GPU.
    bool end() noexcept;

private:
    template <typename Part>
    void abort_unless_done(Part part);
    template <typename Call>
    void enqueue(const char* what, double seconds, Call call);
    void settle(const char* what, double seconds);
    bool is_settled(const char* what);
    void end_together() noexcept;

    Communicator& group_;
    double wait_seconds_;
    double start_seconds_;
    double finish_seconds_;
    int device_index_ = 0;
    int exceptions_;
    ncclComm_t handle_ = nullptr;
    bool is_aborted_ = false;
    std::optional<bool> has_left_;  // what end() came to
    std::future<void> aborted_;     // ends when NCCL has aborted; none: no thread was to be had
};

}  // namespace hpcai::comm
