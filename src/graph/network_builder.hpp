// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>

#include <hpcai/graph/network.hpp>

namespace hpcai::graph {

/// Builds a network from a graph in three phases: builds the kernels; schedules their calls (steps)
/// and finds the first and last step that uses each tensor; allocates memory and binds the tensors.
class Network::Builder {
public:
    Builder(Network& network, ParameterStore& store)
        : network_(network), graph_(network.graph_), store_(store), options_(network.options_) {}

    void build();

private:
    using TensorId = std::size_t;  // an entry of lifetimes_
    static constexpr TensorId kNone = static_cast<TensorId>(-1);

    /// The tensors that one kernel reads and writes, before memory is allocated.
    struct Binding {
        device::Kernel* kernel = nullptr;
        const Node* node = nullptr;  // null: a sum of gradients
        std::vector<TensorId> inputs;
        TensorId output = kNone;
        std::vector<TensorId> output_gradients;
        std::vector<TensorId> input_gradients;
        // [parameter of the node] the tensor for its gradient. kNone: the store; otherwise a
        // partial gradient, which is added to the store, because an earlier step wrote the gradient
        // there
        std::vector<TensorId> parameter_gradients;
        ParameterId sum_into = -1;  // the parameter to whose gradient this step adds its input
        TensorId saved = kNone;
        std::size_t prepared_offset = 0;
    };

    void build_kernels();
    void schedule_forward();
    /// Extends the lifetimes of losses and of the last node's output to the current step, because
    /// the caller reads them afterwards.
    void touch_results();
    void schedule_backward();
    /// Allocates gradients of a stage's outputs, which the caller writes before the backward pass.
    void allocate_output_gradients();
    /// Sums the gradients of each value that an earlier stage sends; the caller sends the sum back.
    void finish_received_gradients();
    void schedule_backward(std::size_t index);
    /// Allocates a partial gradient of each parameter whose gradient an earlier step of the
    /// backward pass has written.
    void allocate_partial_gradients(Binding& binding);
    void add_partial_gradients(const Binding& writer);
    /// Reports the gradients that no step writes (they stay 0) as final after the first backward
    /// step, so that the all-reduce of their bucket can start.
    void complete_untrained_parameters();
    /// Sums gradients of `value` until at most `limit` are left. Its producer's kernel sums those.
    void sum_gradients(ValueId value, std::size_t limit);
    /// Appends a backward step that adds the inputs of `sum`: gradients of the value or parameter
    /// `name`.
    void add_sum(const std::string& name, const ops::Add& operation, tensor::DType dtype,
                 Binding sum);
    void allocate();
    void bind();
    void bind_parameters(const Binding& binding, device::KernelTensors& tensors) const;
    /// Assigns each prepare pass to prepare_optimizer_copies() or prepare_other_copies().
    void schedule_prepare_passes();
    bool shares_parameters(const Node& node) const;
    void publish();  // sets the addresses that the network's functions return

    TensorId new_tensor(std::size_t bytes);
    void touch(TensorId tensor);  // extends the lifetime to the current step
    void touch(const std::vector<TensorId>& tensors) {
        for (const TensorId tensor : tensors) touch(tensor);
    }
    void add_call(std::vector<KernelCall>& to, KernelCall call);
    std::size_t value_bytes(ValueId value, bool gradient) const;
    /// Whether the node's kernel is built for training.
    bool is_trained(const Node& node) const { return is_training() && graph_.is_trained(node); }
    bool takes_gradient(ValueId value) const;
    bool is_training() const { return options_.mode == device::Mode::training; }
    std::span<std::byte> memory_of(TensorId tensor) const;
    void* address(TensorId tensor) const;

    Network& network_;
    const Graph& graph_;
    ParameterStore& store_;
    const NetworkOptions& options_;

    // [node], then sums of gradients. A deque keeps references valid while sums are appended.
    std::deque<Binding> bindings_;
    std::vector<TensorId> values_;                  // [value]
    std::vector<std::vector<TensorId>> gradients_;  // [value] from each reader so far, to be summed
    std::map<ValueId, TensorId> output_gradients_, received_gradients_;
    std::vector<int> pending_writers_;  // [parameter] nodes that must still write its gradient
    std::vector<bool> is_written_;      // [parameter] a step has written its gradient
    std::vector<Lifetime> lifetimes_;
    MemoryPlan plan_;
    std::size_t workspace_bytes_ = 0, workspace_offset_ = 0;  // in arena_, shared by all kernels
    int step_ = 0;                                            // index of the next kernel call
};

}  // namespace hpcai::graph
