// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>

#include <hpcai/graph/memory_plan.hpp>
#include <hpcai/graph/network.hpp>

namespace hpcai::graph {

/// Builds a network from a graph in three phases: it plans the kernels, schedules the steps and
/// records when each tensor is written and read, then places and binds the tensors.
class Network::Builder {
public:
    Builder(Network& network, ParameterStore& store, const NetworkOptions& options)
        : network_(network), graph_(network.graph_), store_(store), options_(options) {}

    void build();

private:
    using TensorId = std::size_t;  // an entry of lifetimes_
    static constexpr TensorId kNone = static_cast<TensorId>(-1);

    /// The tensors that one kernel reads and writes, before they have addresses.
    struct Binding {
        device::Kernel* kernel = nullptr;
        const Node* node = nullptr;  // null: a sum of gradients
        std::vector<TensorId> inputs;
        TensorId output = kNone;
        std::vector<TensorId> output_gradients;
        std::vector<TensorId> input_gradients;
        // Per parameter of the node: memory for this node's part of the gradient, if an earlier
        // step of the backward pass wrote another part; else kNone, and it writes to the store
        std::vector<TensorId> parameter_gradients;
        ParameterId sum_into = -1;  // the parameter to whose gradient this step adds a part
        TensorId saved = kNone;
        std::size_t prepared_offset = 0;
    };

    void plan_kernels();
    void schedule_forward();
    void touch_results();
    void touch_outputs();
    void schedule_backward();
    /// Allocates the gradients of outputs, which are written before the backward pass.
    void receive_gradients();
    /// Sums the gradients of each received value into one, which is read after the backward pass.
    void finish_received();
    void schedule_backward(std::size_t node);
    /// Allocates memory for this node's part of each parameter gradient that an earlier step of the
    /// backward pass has also written.
    void share_parameter_gradients(Binding& binding);
    /// Adds these parts to the gradients of the parameters.
    void sum_parameter_gradients(const Binding& binding);
    /// The parameters of the node whose gradients no later node writes.
    std::vector<ParameterId> completed_parameters(const Node& node);
    /// Marks the parameters that no step completes as complete after the first backward step.
    void complete_untrained_parameters();
    /// Adds gradients of `value` until at most `limit`, which its producer can read, are left.
    void sum_gradients(ValueId value, std::size_t limit);
    void place();
    void bind();
    void bind_parameters(const Binding& binding, device::KernelTensors& tensors) const;
    void order_weight_casts();
    bool shares_parameters(const Node& node) const;
    void publish();

    TensorId new_tensor(std::size_t bytes);
    void touch(TensorId tensor);  // alive at the current step
    void add_step(std::vector<Step>& to, Step step);
    std::size_t value_bytes(ValueId value, bool gradient) const;
    /// Nodes before the first trained parameters need no gradient.
    bool is_trained(const Node& node) const { return is_training() && graph_.is_trained(node); }
    bool takes_gradient(ValueId value) const;
    bool is_training() const { return options_.mode == device::Mode::training; }
    std::span<std::byte> place_of(TensorId tensor) const;
    void* address(TensorId tensor) const;

    Network& network_;
    const Graph& graph_;
    ParameterStore& store_;
    NetworkOptions options_;

    // Per node, then sums of gradients. A deque keeps references valid while these are added.
    std::deque<Binding> bindings_;
    std::vector<TensorId> values_;                  // per value
    std::vector<std::vector<TensorId>> gradients_;  // per value: the gradients so far, to be summed
    std::map<ValueId, TensorId> output_gradients_;  // of outputs
    std::map<ValueId, TensorId> received_gradients_;  // of received values
    std::vector<int> readers_;      // per parameter: nodes that have not written its gradient yet
    std::vector<bool> is_written_;  // per parameter: its gradient has a first part
    std::vector<Lifetime> lifetimes_;
    MemoryPlan plan_;
    std::size_t workspace_bytes_ = 0;
    int step_ = 0;
};

}  // namespace hpcai::graph
