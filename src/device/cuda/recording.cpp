// SPDX-License-Identifier: Apache-2.0
#include "recording.hpp"

namespace hpcai::device::cuda {
namespace {

/// Owns a graph until it is made executable.
class Graph {
public:
    Graph(cudaStream_t stream, const std::function<void()>& enqueue) {
        // Thread-local: other threads of the process may allocate pinned memory in the meantime.
        check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "recording");
        try {
            enqueue();
        } catch (...) {
            cudaStreamEndCapture(stream, &graph_);
            cudaGetLastError();  // or the next launch reports it
            destroy();
            throw;
        }
        const cudaError_t status = cudaStreamEndCapture(stream, &graph_);
        if (status == cudaSuccess) return;
        cudaGetLastError();
        destroy();
        check(status, "recording");
    }
    ~Graph() { destroy(); }
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;
    operator cudaGraph_t() const { return graph_; }

private:
    void destroy() {
        if (graph_ != nullptr) cudaGraphDestroy(graph_);
    }
    cudaGraph_t graph_ = nullptr;
};

class GraphRecording final : public Recording {
public:
    GraphRecording(cudaStream_t stream, const Graph& graph) : stream_(stream) {
        // Else the sums' stream would lose its priority.
        check(cudaGraphInstantiate(&executable_, graph, cudaGraphInstantiateFlagUseNodePriority),
              "preparing a recording");
    }
    ~GraphRecording() override { cudaGraphExecDestroy(executable_); }
    GraphRecording(const GraphRecording&) = delete;
    GraphRecording& operator=(const GraphRecording&) = delete;

    void run() override { check(cudaGraphLaunch(executable_, stream_), "running a recording"); }

private:
    cudaStream_t stream_;
    cudaGraphExec_t executable_ = nullptr;
};

}  // namespace

std::unique_ptr<Recording> record_work(cudaStream_t stream, const std::function<void()>& enqueue) {
    return std::make_unique<GraphRecording>(stream, Graph(stream, enqueue));
}

}  // namespace hpcai::device::cuda
