// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <future>
#include <thread>
#include <utility>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <hpcai/base/clock.hpp>
#include <hpcai/comm/all_reduce_schedule.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/comm/nccl_reducer.hpp>

#include "all_reduce_times.hpp"

namespace hpcai::comm {

/// Messages of an exchange, all in one buffer in device memory.
struct DeviceMessages {
    std::span<const WireMessage> sends;
    std::span<const WireMessage> receives;
    std::byte* wire = nullptr;
};

/// Throws Error(internal) with `what` and NCCL's error unless `status` is ncclSuccess.
inline void check_nccl(ncclResult_t status, const char* what) {
    if (status == ncclSuccess) return;
    const std::string_view details = ncclGetLastError(nullptr);
    throw Error(ExitCode::internal,
                fmt::format("{}: NCCL reports {}{}{}", what, ncclGetErrorString(status),
                            details.empty() ? "" : "; ", details));
}

/// Owns a non-blocking NCCL communicator. Waits for its calls with a deadline and checks for
/// failures that ranks announce. A call that throws also aborts the communicator, so that kernels
/// that wait for other ranks leave the GPU.
class NcclGroup {
public:
    /// Uses the current device. Call start() next.
    explicit NcclGroup(const NcclReducerOptions& options)
        : options_(options), group_(options.group), exceptions_(std::uncaught_exceptions()) {
        check_cuda(cudaGetDevice(&device_index_), "starting NCCL");
    }
    ~NcclGroup() { end(); }

    /// Initializes the communicator; call it once. If it fails on any rank, every rank throws the
    /// same Error. Collective.
    void start() {
        constexpr const char* kWhat = "starting NCCL";
        ncclUniqueId id{};
        collective_try(group_, [&] {
            if (group_.rank() == 0) check_nccl(ncclGetUniqueId(&id), kWhat);
        });
        group_.broadcast(std::as_writable_bytes(std::span(&id, 1)), 0);
        collective_try(group_, [&] {
            ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
            config.blocking = 0;
            const ncclResult_t status =
                ncclCommInitRankConfig(&handle_, group_.size(), id, group_.rank(), &config);
            if (status != ncclInProgress) check_nccl(status, kWhat);
            wait_for_call(kWhat, options_.start_seconds);
        });
    }

    /// Enqueues an all-reduce on `stream`, or captures it if `stream` is being captured.
    void enqueue_sum(std::span<float> device_values, cudaStream_t stream) {
        enqueue("enqueueing an all-reduce over GPUs", options_.wait_seconds, [&] {
            return ncclAllReduce(device_values.data(), device_values.data(), device_values.size(),
                                 ncclFloat32, ncclSum, handle_, stream);
        });
    }
    /// Enqueues or captures messages. Messages between two ranks match in the order of these calls.
    void enqueue_exchange(const DeviceMessages& messages, cudaStream_t stream) {
        if (messages.sends.empty() && messages.receives.empty()) return;
        enqueue("enqueueing messages between GPUs", options_.wait_seconds,
                [&] { return start_messages(messages, handle_, stream); });
    }
    /// Exchanges the first messages on `stream`, so that NCCL connects the GPUs. Waits at most
    /// start_seconds.
    void connect(const DeviceMessages& messages, cudaStream_t stream) {
        constexpr const char* kWhat = "connecting the GPUs of a group";
        begin(kWhat, [&] { return start_messages(messages, handle_, stream); });
        wait_until([&] { return is_done(cudaStreamQuery(stream), kWhat); }, kWhat,
                   options_.start_seconds);
    }

    /// Waits until `is_done` returns true. Throws after `seconds` or if NCCL or a rank fails.
    void wait_until(const std::function<bool()>& is_done, const char* what, double seconds) {
        abort_on_failure([&] {
            const Stopwatch watch;
            Stopwatch since_check;
            for (int polls = 0; !(is_call_complete(what) && is_done()); ++polls) {
                polls < kPollsBeforeSleep ? std::this_thread::yield()
                                          : std::this_thread::sleep_for(kSleep);
                if (since_check.seconds() < kNcclFailureCheckSeconds) continue;
                since_check.restart();
                group_.check_for_failure();
                require(watch.seconds() < seconds, ExitCode::watchdog,
                        "rank {} of {}: {} took longer than {} s", group_.rank(), group_.size(),
                        what, seconds);
            }
        });
    }

    /// Aborts the communicator without waiting for it.
    void abort() noexcept {
        // ncclCommAbort stops NCCL's kernels at once, but returns only when every CUDA graph with
        // work of the communicator is destroyed. The owners may destroy these graphs after abort()
        // returns, so a detached thread makes the call.
        if (handle_ == nullptr) return;
        is_aborted_ = true;
        try {
            std::packaged_task<void()> task([handle = handle_, device = device_index_] {
                cudaSetDevice(device);
                ncclCommAbort(handle);
            });
            aborted_ = task.get_future();
            std::thread(std::move(task)).detach();
        } catch (const std::exception&) {
            // No thread can be created: the communicator is leaked.
        }
        handle_ = nullptr;
    }

    /// Ends the communicator together with the other ranks or, after a failure, alone. Returns
    /// whether all of its work has left the GPU.
    bool end() noexcept {
        if (has_left_gpu_) return *has_left_gpu_;
        if (std::uncaught_exceptions() > exceptions_) abort();
        if (handle_ != nullptr) end_together();
        has_left_gpu_ = !is_aborted_ ||
                        (aborted_.valid() && aborted_.wait_for(Seconds(options_.finish_seconds)) ==
                                                 std::future_status::ready);
        return *has_left_gpu_;
    }

private:
    using Seconds = std::chrono::duration<double>;

    static constexpr int kPollsBeforeSleep = 1000;
    static constexpr std::chrono::microseconds kSleep{50};
    static constexpr double kNcclFailureCheckSeconds = 0.02;

    /// Returns the status of the first call that fails, else the status of ncclGroupEnd.
    static ncclResult_t start_messages(const DeviceMessages& messages, ncclComm_t handle,
                                       cudaStream_t stream) {
        ncclResult_t status = ncclGroupStart();
        if (status != ncclSuccess) return status;
        const auto keep_first_failure = [&](ncclResult_t result) {
            if (status == ncclSuccess && result != ncclInProgress) status = result;
        };
        for (const auto& [rank, offset, bytes] : messages.sends) {
            keep_first_failure(
                ncclSend(messages.wire + offset, bytes, ncclUint8, rank, handle, stream));
        }
        for (const auto& [rank, offset, bytes] : messages.receives) {
            keep_first_failure(
                ncclRecv(messages.wire + offset, bytes, ncclUint8, rank, handle, stream));
        }
        const ncclResult_t group_status = ncclGroupEnd();
        return status == ncclSuccess ? group_status : status;
    }

    template <typename Work>
    void abort_on_failure(Work work) {
        try {
            work();
        } catch (...) {
            abort();
            throw;
        }
    }
    template <typename Call>
    void begin(const char* what, Call call) {
        ensure(handle_ != nullptr, "{}: NCCL has been aborted", what);
        abort_on_failure([&] {
            const ncclResult_t status = call();
            if (status != ncclInProgress) check_nccl(status, what);
        });
    }
    template <typename Call>
    void enqueue(const char* what, double seconds, Call call) {
        begin(what, call);
        // NCCL's thread may not yet have enqueued the work on the stream.
        wait_for_call(what, seconds);
    }
    void wait_for_call(const char* what, double seconds) {
        wait_until([] { return true; }, what, seconds);
    }
    bool is_call_complete(const char* what) {
        ensure(handle_ != nullptr, "{}: NCCL has been aborted", what);
        ncclResult_t state = ncclSuccess;
        check_nccl(ncclCommGetAsyncError(handle_, &state), what);
        if (state != ncclInProgress) check_nccl(state, what);
        return state == ncclSuccess;
    }
    void end_together() noexcept {
        ncclResult_t state = ncclCommFinalize(handle_);
        const Stopwatch watch;
        while (state == ncclInProgress && watch.seconds() < options_.finish_seconds) {
            std::this_thread::sleep_for(kSleep);
            if (ncclCommGetAsyncError(handle_, &state) != ncclSuccess) break;
        }
        if (state != ncclSuccess) return abort();
        ncclCommDestroy(std::exchange(handle_, nullptr));
    }

    NcclReducerOptions options_;
    Communicator& group_;
    int device_index_ = 0;
    int exceptions_;
    ncclComm_t handle_ = nullptr;
    bool is_aborted_ = false;
    std::optional<bool> has_left_gpu_;  // result of end(); empty: not ended
    std::future<void> aborted_;         // ready when NCCL has aborted; invalid: none began
};

}  // namespace hpcai::comm
