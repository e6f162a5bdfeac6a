// SPDX-License-Identifier: Apache-2.0
// The parts of CUDA's runtime that the engine uses, on host memory: streams, events and graphs.
#include <algorithm>
#include <utility>

#include "runtime.hpp"

namespace {

using namespace hpcai::simt;

void refuse_captured(cudaStream_t stream, const char* what) {
    if (stream == nullptr || stream->graph == nullptr) return;
    stream->graph->invalid = what;
    throw CallError{cudaErrorStreamCaptureUnsupported, std::string(what) + " of a captured stream"};
}

void finish(const CUevent_st& event) {
    if (event.queue != nullptr) {
        runtime().carry_out([&] { event.queue->finish(event.number); });
    }
}

void demand_waitable(const CUevent_st& event, const char* what) {
    demand(event.graph == nullptr, cudaErrorCapturedEvent, "waits for an event of a capture");
    runtime().refuse_during_capture(what);
}

/// Runs one more task, so that repeated queries complete the queue.
void query(Queue& queue, std::size_t number) {
    if (queue.done() >= number) return;
    runtime().is_query = true;
    try {
        runtime().carry_out([&] { queue.finish(queue.done() + 1); });
    } catch (const NotYet&) {
        // The task still waits for another process.
    }
    runtime().is_query = false;
    throw CallError{cudaErrorNotReady, "not ready"};
}

/// Ends the capture that began on `stream`.
std::unique_ptr<CUgraph_st> take_capture(cudaStream_t stream) {
    auto& captures = runtime().captures;
    const auto found = std::find_if(captures.begin(), captures.end(), [&](const auto& capture) {
        return capture.get() == stream->graph;
    });
    demand(found != captures.end(), cudaErrorIllegalState, "the stream is not captured");
    demand(stream->lane == 0, cudaErrorStreamCaptureUnmatched,
           "the capture began on another stream");
    std::unique_ptr<CUgraph_st> graph = std::move(*found);
    captures.erase(found);
    for (const cudaStream_t captured : graph->streams) captured->graph = nullptr;
    return graph;
}

}  // namespace

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
    return call([&] {
        auto made = std::make_unique<CUstream_st>();
        made->blocking = (flags & cudaStreamNonBlocking) == 0;
        if (!runtime().streams.empty()) made->order = runtime().next_order;
        *stream = made.get();
        runtime().streams.push_back(std::move(made));
    });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
    return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    return call([&] {
        *least = 0;
        *greatest = -5;
    });
}

/// The failure of a device persists until its last stream is destroyed.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    const cudaError_t status = call([&] {
        refuse_captured(stream, "cudaStreamDestroy");
        runtime().carry_out([&] { stream->queue->finish(); });
    });
    auto& streams = runtime().streams;
    std::erase_if(streams, [&](const auto& one) { return one.get() == stream; });
    if (streams.empty()) runtime().failure.clear();
    return status;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    return call([&] {
        refuse_captured(stream, "cudaStreamSynchronize");
        runtime().refuse_during_capture("cudaStreamSynchronize");
        if (stream == nullptr) {
            runtime().enqueue(nullptr, [] {});
        } else {
            runtime().carry_out([&] { stream->queue->finish(); });
        }
    });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
    return call([&] {
        refuse_captured(stream, "cudaStreamQuery");
        runtime().refuse_during_capture("cudaStreamQuery");
        query(*stream->queue, stream->queue->enqueued());
    });
}

cudaError_t cudaDeviceSynchronize() {
    return call([&] {
        runtime().refuse_during_capture("cudaDeviceSynchronize");
        runtime().finish_all();
    });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
    return call([&] { runtime().enqueue(stream, [=] { function(data); }); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
    return call([&] {
        *event = new CUevent_st;
        (*event)->timed = (flags & cudaEventDisableTiming) == 0;
    });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    return call_after_all([&] { delete event; });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    return call([&] {
        if (stream != nullptr && stream->graph != nullptr) {
            event->queue = nullptr;
            event->graph = stream->graph;
            event->place = {stream->lane, stream->graph->lanes[stream->lane].size()};
            return;
        }
        event->graph = nullptr;
        event->time = std::make_shared<Moment>();
        if (stream != nullptr) {
            event->queue = stream->queue;
            event->number = stream->queue->enqueued() + 1;
        }
        runtime().enqueue(stream, [time = event->time] { time->come(); });
    });
}

/// An external event gets its time in every run of the graph and does not order any work.
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
    if ((flags & cudaEventRecordExternal) == 0) return cudaEventRecord(event, stream);
    return call([&] {
        demand(stream != nullptr && stream->graph != nullptr, cudaErrorIllegalState,
               "an external event of a stream that is not captured");
        event->queue = nullptr;
        event->graph = nullptr;
        event->time = std::make_shared<Moment>();
        stream->graph->moments.push_back(event->time);
        runtime().enqueue(stream, [time = event->time] { time->come(); });
    });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    return call([&] {
        demand_waitable(*event, "cudaEventQuery");
        if (event->queue != nullptr) query(*event->queue, event->number);
    });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    return call([&] {
        demand_waitable(*event, "cudaEventSynchronize");
        finish(*event);
    });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
    return call([&] {
        demand(start->timed && end->timed && start->time && end->time,
               cudaErrorInvalidResourceHandle, "an event has no time");
        demand(start->time->has_come && end->time->has_come, cudaErrorNotReady,
               "an event has not come");
        *milliseconds =
            std::chrono::duration<float, std::milli>(end->time->at - start->time->at).count();
    });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    return call([&] {
        demand(stream != nullptr, cudaErrorInvalidValue, "the null stream waits for an event");
        runtime().wait(stream, *event);
    });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
    return call([&] {
        demand(stream != nullptr, cudaErrorStreamCaptureUnsupported, "capture of the null stream");
        demand(stream->graph == nullptr, cudaErrorIllegalState, "the stream is captured already");
        auto graph = std::make_unique<CUgraph_st>();
        graph->mode = mode;
        graph->streams = {stream};
        stream->graph = graph.get();
        stream->lane = 0;
        runtime().captures.push_back(std::move(graph));
    });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
    return call([&] {
        *graph = nullptr;
        auto taken = take_capture(stream);
        demand(taken->invalid.empty(), cudaErrorStreamCaptureInvalidated,
               taken->invalid + " was called during the capture");
        demand(taken->is_joined(), cudaErrorStreamCaptureUnjoined,
               "the stream that began a capture does not wait for another in it");
        *graph = taken.release();
    });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
    return call([&] {
        *status = stream == nullptr || stream->graph == nullptr ? cudaStreamCaptureStatusNone
                  : stream->graph->invalid.empty()              ? cudaStreamCaptureStatusActive
                                                   : cudaStreamCaptureStatusInvalidated;
    });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
    return call([&] { *executable = new CUgraphExec_st{*graph}; });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    return call_after_all([&] { delete graph; });
}

/// Launched work keeps a copy.
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
    return call([&] {
        demand(stream == nullptr || stream->graph == nullptr, cudaErrorStreamCaptureUnsupported,
               "a graph's launch into a capture");
        for (const auto& moment : executable->graph.moments) moment->has_come = false;
        const Order order = runtime().next_order;
        runtime().enqueue(stream, [graph = executable->graph, order] { graph.run(order); });
    });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) {
    return call([] {});
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
    return call_after_all([&] { delete executable; });
}
