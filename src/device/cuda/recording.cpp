// SPDX-License-Identifier: Apache-2.0
#include "recording.hpp"

#include "owned.hpp"

namespace hpcai::device::cuda {
namespace {

using Graph = OwnedHandle<cudaGraph_t, cudaGraphDestroy>;

void capture(cudaStream_t stream, const std::function<void()>& enqueue, Graph& graph) {
    // Thread-local mode lets other threads of the process allocate pinned memory at the same time.
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capturing");
    try {
        enqueue();
    } catch (...) {
        cudaStreamEndCapture(stream, graph.out());
        cudaGetLastError();  // clears the error
        throw;
    }
    check(cudaStreamEndCapture(stream, graph.out()), "capturing");
}

class GraphRecording final : public Recording {
public:
    GraphRecording(cudaStream_t stream, const std::function<void()>& enqueue) : stream_(stream) {
        Graph graph;
        capture(stream, enqueue, graph);
        // Nodes keep the priority of their stream, which differs for all-reduces.
        check(
            cudaGraphInstantiate(executable_.out(), graph, cudaGraphInstantiateFlagUseNodePriority),
            "preparing a CUDA graph");
    }

    void run() override { check(cudaGraphLaunch(executable_, stream_), "launching a CUDA graph"); }

private:
    cudaStream_t stream_;
    OwnedHandle<cudaGraphExec_t, cudaGraphExecDestroy> executable_;
};

}  // namespace

std::unique_ptr<Recording> record_work(cudaStream_t stream, const std::function<void()>& enqueue) {
    return std::make_unique<GraphRecording>(stream, enqueue);
}

}  // namespace hpcai::device::cuda
