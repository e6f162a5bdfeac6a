// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>

#include "device_memory.hpp"
#include "streams.hpp"

/// Implements the functions of cudart.cpp.
namespace hpcai::simt {

using Work = std::function<void()>;

/// The error that a CUDA function returns.
struct CallError {
    cudaError_t code = cudaErrorInvalidValue;
    std::string why;
};

/// Thrown by work that waits for another process. The work restarts from its beginning when the
/// stream is queried or awaited again. Only valid if is_query().
struct NotYet {};

/// Returns whether the current work runs for a query of its stream's progress. Recorded work always
/// runs to its end.
bool is_query();

/// Throws CallError unless `condition` holds.
void demand(bool condition, cudaError_t code, const std::string& why);

/// The time of an event, updated each time its position in a stream or graph is reached.
struct Moment {
    std::chrono::steady_clock::time_point at;
    bool has_come = false;

    void come();
};

/// The tasks of a stream in order. An enqueued task gets the next number, from 1.
class Queue {
public:
    std::size_t append(Work work);
    /// Runs all tasks up to a number. An exception ends the task, unless it is NotYet.
    void finish(std::size_t number);
    void finish() { finish(enqueued_); }
    std::size_t enqueued() const { return enqueued_; }
    std::size_t done() const { return done_; }
    void clear();

private:
    std::deque<Work> work_;
    std::size_t enqueued_ = 0, done_ = 0;
};

}  // namespace hpcai::simt

/// A recorded graph: each stream is a lane, and lanes may wait for other lanes; lane 0 began the
/// capture.
struct CUgraph_st {
    struct Wait {
        std::size_t lane = 0;
        std::size_t length = 0;  // the tasks of that lane that must be complete
    };
    struct Node {
        hpcai::simt::Work work;  // or
        std::optional<Wait> wait;
    };
    std::vector<std::vector<Node>> lanes{1};
    cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
    std::thread::id thread = std::this_thread::get_id();        // the thread that began the capture
    std::vector<cudaStream_t> streams;                          // of the lanes, during capture
    std::vector<std::shared_ptr<hpcai::simt::Moment>> moments;  // of external events
    std::string invalid;  // the reason, after a forbidden call

    bool is_joined() const;
    void run(hpcai::simt::Order order) const;
};

struct CUgraphExec_st {
    CUgraph_st graph;
};

struct CUstream_st {
    std::shared_ptr<hpcai::simt::Queue> queue = std::make_shared<hpcai::simt::Queue>();
    bool blocking = true;  // synchronizes with the null stream
    hpcai::simt::Order order = hpcai::simt::Order::late;
    CUgraph_st* graph = nullptr;  // during capture
    std::size_t lane = 0;
};

struct CUevent_st {
    std::shared_ptr<hpcai::simt::Queue> queue;  // where it was recorded; null: never
    std::size_t number = 0;
    CUgraph_st* graph = nullptr;  // or a lane of this
    CUgraph_st::Wait place;
    bool timed = true;
    std::shared_ptr<hpcai::simt::Moment> time;  // of the last record
};

namespace hpcai::simt {

/// The GPU of a process. It is global, because CUDA functions take no context.
class Runtime {
public:
    static Runtime& instance();

    DeviceMemory memory;
    PinnedMemory pinned;
    std::vector<std::unique_ptr<CUstream_st>> streams;
    std::vector<std::unique_ptr<CUgraph_st>> captures;  // in progress
    Order next_order = Order::late;
    bool is_query = false;
    std::string failure;  // of work on a stream, reported by all later calls
    std::chrono::steady_clock::duration simulated_time{};  // simulated duration of work
    cudaError_t last = cudaSuccess;
    std::string last_message;  // message of `last`
    std::recursive_mutex mutex;

    void enqueue(cudaStream_t stream, Work work);
    void wait(cudaStream_t stream, const CUevent_st& event);
    void finish_all();
    /// Runs a task and stores its exception as the failure of the device.
    void carry_out(const Work& work);
    /// Throws CallError for calls that CUDA forbids while a stream is captured in a mode that
    /// affects this thread.
    void refuse_during_capture(const char* what);

private:
    Runtime() = default;
};

inline Runtime& runtime() {
    return Runtime::instance();
}

/// Runs the body of a CUDA function. Returns success, the error of a CallError, or an earlier
/// failure.
cudaError_t call(const std::function<void()>& body);

/// Like call(), for functions that free something, which also run after a failure.
cudaError_t call_after_all(const std::function<void()>& body);

}  // namespace hpcai::simt
