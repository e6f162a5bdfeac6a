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

/// The implementation of the functions of cudart.cpp.
namespace hpcai::simt {

using Work = std::function<void()>;

/// What a function of CUDA returns in place of success.
struct Refusal {
    cudaError_t code = cudaErrorInvalidValue;
    std::string why;
};

/// Thrown by work that waits for another process, to be done from its beginning when the stream is
/// asked or waited for again. Only where is_only_asked().
struct NotYet {};

/// Whether the work under way is done for a query of its stream's progress. Work that
/// is part of a recording is done in one go.
bool is_only_asked();

/// Throws Refusal unless `condition` holds.
void demand(bool condition, cudaError_t code, const std::string& why);

/// When an event came, each time that its place in a stream or a graph is reached.
struct Moment {
    std::chrono::steady_clock::time_point at;
    bool has_come = false;

    void come();
};

/// Work in the order of a stream. Work that is enqueued gets the next number, from 1.
class Queue {
public:
    std::size_t append(Work work);
    /// Does all work up to a number. What it throws ends the work, unless it is NotYet.
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

/// Recorded work: lanes for streams, which wait for one another; lane 0 began the capture.
struct CUgraph_st {
    struct Wait {
        std::size_t lane = 0;
        std::size_t length = 0;  // of that lane, up to which it must be done
    };
    struct Node {
        hpcai::simt::Work work;  // or
        std::optional<Wait> wait;
    };
    std::vector<std::vector<Node>> lanes{1};
    cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
    std::thread::id thread = std::this_thread::get_id();        // that began the capture
    std::vector<cudaStream_t> streams;                          // a lane's, while it is captured
    std::vector<std::shared_ptr<hpcai::simt::Moment>> moments;  // of external events
    std::string invalid;  // why, once something forbidden was called

    bool is_joined() const;
    void run(hpcai::simt::Order order) const;
};

struct CUgraphExec_st {
    CUgraph_st graph;
};

struct CUstream_st {
    std::shared_ptr<hpcai::simt::Queue> queue = std::make_shared<hpcai::simt::Queue>();
    bool blocking = true;  // waits for the null stream, which waits for it
    hpcai::simt::Order order = hpcai::simt::Order::late;
    CUgraph_st* graph = nullptr;  // while it is captured
    std::size_t lane = 0;
};

struct CUevent_st {
    std::shared_ptr<hpcai::simt::Queue> queue;  // what it was recorded in; null: nothing
    std::size_t number = 0;
    CUgraph_st* graph = nullptr;  // or a lane of this
    CUgraph_st::Wait place;
    bool timed = true;
    std::shared_ptr<hpcai::simt::Moment> time;  // of what was recorded last
};

namespace hpcai::simt {

/// The one GPU of a process. CUDA's functions have no context to be given.
class Runtime {
public:
    static Runtime& instance();

    DeviceMemory memory;
    PinnedMemory pinned;
    std::vector<std::unique_ptr<CUstream_st>> streams;
    std::vector<std::unique_ptr<CUgraph_st>> captures;  // under way
    Order next_order = Order::late;
    bool is_only_asked = false;
    std::string failure;  // of work on a stream: all later calls report it
    std::chrono::steady_clock::duration pretended{};  // time that work is assumed to have taken
    cudaError_t last = cudaSuccess;
    std::string last_words;  // about `last`
    std::recursive_mutex mutex;

    void enqueue(cudaStream_t stream, Work work);
    void wait(cudaStream_t stream, const CUevent_st& event);
    void finish_all();
    /// Does work and keeps what it throws as the device's failure.
    void carry_out(const Work& work);
    /// Refuses what CUDA forbids while a stream is captured in a mode that minds this thread.
    void refuse_during_capture(const char* what);

private:
    Runtime() = default;
};

inline Runtime& runtime() {
    return Runtime::instance();
}

/// The body of a CUDA function: returns success, or what it refused or what has failed before.
cudaError_t call(const std::function<void()>& body);

/// The same of what gives something back, which it does after a failure, too.
cudaError_t call_after_all(const std::function<void()>& body);

}  // namespace hpcai::simt
