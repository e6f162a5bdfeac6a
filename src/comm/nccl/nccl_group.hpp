// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <future>
#include <optional>
#include <span>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <hpcai/comm/all_reduce_schedule.hpp>
#include <hpcai/comm/nccl_reducer.hpp>

#include "cuda_status.hpp"

namespace hpcai::comm {

/// Messages of an exchange, all in one buffer in device memory.
struct DeviceMessages {
    std::span<const WireMessage> sends;
    std::span<const WireMessage> receives;
    std::byte* wire = nullptr;
};

/// Throws Error(internal) with `what` and NCCL's error unless `status` is ncclSuccess.
void check_nccl(ncclResult_t status, const char* what);

/// Owns a non-blocking NCCL communicator. Waits for its calls with a deadline and checks for
/// failures that ranks announce. A call that throws also aborts the communicator, so that kernels
/// that wait for other ranks leave the GPU.
class NcclGroup {
public:
    /// Uses the current device. Call start() next.
    explicit NcclGroup(const NcclReducerOptions& options);
    ~NcclGroup() { end(); }
    NcclGroup(const NcclGroup&) = delete;
    NcclGroup& operator=(const NcclGroup&) = delete;

    /// Initializes the communicator; call it once. If it fails on any rank, every rank throws the
    /// same Error. Collective.
    void start();

    /// Enqueues an all-reduce on `stream`, or captures it while `stream` captures a CUDA graph.
    void enqueue_sum(std::span<float> device_values, cudaStream_t stream);
    /// Enqueues or captures messages. Messages between two ranks match in the order of these calls.
    void enqueue_exchange(const DeviceMessages& messages, cudaStream_t stream);
    /// Exchanges the first messages on `stream`, so that NCCL connects the GPUs. Waits at most
    /// start_seconds.
    void connect(const DeviceMessages& messages, cudaStream_t stream);

    /// Waits until `is_done` returns true. Throws after `seconds` or if NCCL detects a failure.
    void wait_until(const std::function<bool()>& is_done, const char* what, double seconds);

    /// Aborts the communicator without waiting for it.
    void abort() noexcept;

    /// Ends the communicator together with the other ranks or, after a failure, alone. Returns
    /// whether all of its work has left the GPU.
    bool end() noexcept;

private:
    template <typename Work>
    void abort_on_failure(Work work);
    template <typename Call>
    void enqueue(const char* what, double seconds, Call call);
    void wait_for_call(const char* what, double seconds);
    bool is_call_complete(const char* what);
    void end_together() noexcept;

    Communicator& group_;
    double wait_seconds_;
    double start_seconds_;
    double finish_seconds_;
    int device_index_ = 0;
    int exceptions_;
    ncclComm_t handle_ = nullptr;
    bool is_aborted_ = false;
    std::optional<bool> left_gpu_;  // result of end(); empty: not ended
    std::future<void> aborted_;     // ready when NCCL has aborted; invalid: no abort runs
};

}  // namespace hpcai::comm
