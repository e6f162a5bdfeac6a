// SPDX-License-Identifier: Apache-2.0
#include "runtime.hpp"

#include <algorithm>
#include <utility>

#include <hpcai/base/error.hpp>

namespace {

using hpcai::simt::Order;

/// The progress of a lane while a graph runs.
class GraphRun {
public:
    GraphRun(const CUgraph_st& graph, Order order)
        : graph_(graph), order_(order), done_(graph.lanes.size()) {}

    void finish(std::size_t lane, std::size_t length) {
        while (done_[lane] < length) {
            const CUgraph_st::Node& node = graph_.lanes[lane][done_[lane]];
            if (node.wait) {
                finish(node.wait->lane, node.wait->length);
            } else {
                node.work();
            }
            ++done_[lane];
            if (order_ == Order::early && lane == 0) others_do_what_they_may();
        }
    }

private:
    bool may_go_on(std::size_t lane) const {
        if (done_[lane] == graph_.lanes[lane].size()) return false;
        const auto& wait = graph_.lanes[lane][done_[lane]].wait;
        return !wait || done_[wait->lane] >= wait->length;
    }
    void others_do_what_they_may() {
        for (std::size_t lane = 1; lane < done_.size(); ++lane) {
            while (may_go_on(lane)) finish(lane, done_[lane] + 1);
        }
    }

    const CUgraph_st& graph_;
    Order order_;
    std::vector<std::size_t> done_;
};

}  // namespace

/// Returns whether the first lane waits for the end of every other lane.
bool CUgraph_st::is_joined() const {
    std::vector<std::size_t> reached(lanes.size());
    reached[0] = lanes[0].size();
    for (bool changed = true; changed;) {
        changed = false;
        for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
            for (std::size_t i = 0; i < reached[lane]; ++i) {
                const auto& wait = lanes[lane][i].wait;
                if (!wait || reached[wait->lane] >= wait->length) continue;
                reached[wait->lane] = wait->length;
                changed = true;
            }
        }
    }
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
        if (reached[lane] < lanes[lane].size()) return false;
    }
    return true;
}

void CUgraph_st::run(Order order) const {
    bool& is_query = hpcai::simt::Runtime::instance().is_query;
    const bool was_only_asked = std::exchange(is_query, false);
    GraphRun(*this, order).finish(0, lanes[0].size());
    is_query = was_only_asked;
}

namespace hpcai::simt {

void demand(bool condition, cudaError_t code, const std::string& why) {
    if (!condition) throw CallError{code, why};
}

std::size_t Queue::append(Work work) {
    work_.push_back(std::move(work));
    return ++enqueued_;
}

void Queue::finish(std::size_t number) {
    while (done_ < number) {
        Work work = std::move(work_.front());
        work_.pop_front();
        try {
            work();
        } catch (const NotYet&) {
            work_.push_front(std::move(work));
            throw;
        }
        ++done_;
    }
}

void Queue::clear() {
    work_.clear();
    done_ = enqueued_;
}

Runtime& Runtime::instance() {
    static Runtime runtime;
    return runtime;
}

void Runtime::carry_out(const Work& work) {
    const DeviceMemory::Access access(memory);
    try {
        work();
    } catch (const std::exception& error) {
        failure = error.what();
    } catch (const CallError& error) {
        failure = error.why;
    }
    if (failure.empty()) return;
    for (const auto& stream : streams) stream->queue->clear();
}

void Runtime::enqueue(cudaStream_t stream, Work work) {
    if (stream == nullptr) {
        refuse_during_capture("work on the null stream");
        for (const auto& other : streams) {
            if (other->blocking) carry_out([&] { other->queue->finish(); });
        }
        const DeviceMemory::Access access(memory);
        work();
    } else if (stream->graph != nullptr) {
        stream->graph->lanes[stream->lane].push_back({std::move(work), {}});
    } else {
        stream->queue->append(std::move(work));
        if (stream->order == Order::early) carry_out([&] { stream->queue->finish(); });
    }
}

void Runtime::wait(cudaStream_t stream, const CUevent_st& event) {
    if (event.graph != nullptr) {
        demand(stream->graph == nullptr || stream->graph == event.graph,
               cudaErrorStreamCaptureMerge, "waits for another capture");
        if (stream->graph == nullptr) {
            stream->graph = event.graph;
            stream->lane = event.graph->lanes.size();
            event.graph->lanes.emplace_back();
            event.graph->streams.push_back(stream);
        }
        event.graph->lanes[stream->lane].push_back({{}, event.place});
        return;
    }
    if (event.queue == nullptr) return;
    demand(stream->graph == nullptr, cudaErrorStreamCaptureIsolation,
           "captured work waits for work that is not");
    enqueue(stream, [queue = event.queue, number = event.number] { queue->finish(number); });
}

void Runtime::finish_all() {
    for (const auto& stream : streams) carry_out([&] { stream->queue->finish(); });
}

void Runtime::refuse_during_capture(const char* what) {
    for (const auto& capture : captures) {
        const bool own = capture->thread == std::this_thread::get_id();
        if (capture->mode == cudaStreamCaptureModeRelaxed ||
            (capture->mode == cudaStreamCaptureModeThreadLocal && !own)) {
            continue;
        }
        capture->invalid = what;
        throw CallError{cudaErrorStreamCaptureUnsupported,
                        std::string(what) + " while a stream is captured"};
    }
}

cudaError_t call(const std::function<void()>& body) {
    return call_after_all([&] {
        if (Runtime::instance().failure.empty()) body();
    });
}

cudaError_t call_after_all(const std::function<void()>& body) {
    Runtime& runtime = Runtime::instance();
    const std::lock_guard lock(runtime.mutex);
    const auto report = [&](cudaError_t code, const std::string& words) {
        runtime.last = code;
        runtime.last_message = words;
        return code;
    };
    try {
        body();
    } catch (const CallError& error) {
        return report(error.code, error.why);
    } catch (const std::exception& error) {
        runtime.failure = error.what();
    }
    if (runtime.failure.empty()) return cudaSuccess;
    return report(cudaErrorLaunchFailure, runtime.failure);
}

void Moment::come() {
    at = std::chrono::steady_clock::now() + Runtime::instance().simulated_time;
    has_come = true;
}

void pretend(double seconds) {
    Runtime::instance().simulated_time +=
        std::chrono::duration_cast<std::chrono::steady_clock::duration>(
            std::chrono::duration<double>(seconds));
}

bool is_query() {
    return Runtime::instance().is_query;
}

void set_order(Order order) {
    Runtime::instance().next_order = order;
}

void enqueue(CUstream_st* stream, std::function<void()> work) {
    Runtime& runtime = Runtime::instance();
    const std::lock_guard lock(runtime.mutex);
    ensure(runtime.failure.empty(), "a kernel after {}", runtime.failure);
    try {
        runtime.enqueue(stream, std::move(work));
    } catch (const CallError& error) {
        throw Error(ExitCode::internal, "CUDA rejects a kernel: " + error.why);
    }
}

bool is_captured(CUstream_st* stream) {
    const std::lock_guard lock(Runtime::instance().mutex);
    return stream != nullptr && stream->graph != nullptr;
}

void set_free_memory(std::size_t bytes) {
    Runtime::instance().memory.set_free(bytes);
}

std::size_t pending_work() {
    std::size_t pending = 0;
    for (const auto& stream : Runtime::instance().streams) {
        pending += stream->queue->enqueued() - stream->queue->done();
    }
    return pending;
}

}  // namespace hpcai::simt
