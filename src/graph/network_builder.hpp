// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>

#include <hpcai/graph/memory_plan.hpp>
#include <hpcai/graph/network.hpp>

namespace hpcai::graph {

/// Turns a graph into kernels, an order of steps and addresses. Three phases: plan the kernels,
/// lay out the steps while noting when each tensor is written and read, then place and bind.
class Network::Builder {
public:
    Builder(Network& network, ParameterStore& store, const NetworkOptions& options)
        : network_(network), graph_(network.graph_), store_(store), options_(options) {}

    void build();

private:
    using TensorId = std::size_t;  // an entry of lifetimes_
    static constexpr TensorId kNone = static_cast<TensorId>(-1);

    /// What one kernel reads and writes, as tensors still to be placed.
    struct Binding {
        device::Kernel* kernel = nullptr;
        const Node* node = nullptr;  // null: a sum of gradients
        std::vector<TensorId> inputs;
        TensorId output = kNone;
        std::vector<TensorId> output_gradients;
        std::vector<TensorId> input_gradients;
        // Per parameter of the node: where its part of a shared gradient goes; kNone: the store
        std::vector<TensorId> parameter_gradients;
        ParameterId sum_into = -1;  // a sum of parts of this parameter's gradient
        TensorId saved = kNone;
        std::size_t prepared_offset = 0;
    };

    void plan_kernels();
    void schedule_forward();
    void touch_results();
    void touch_outputs();
    void lay_out_backward();
    /// Places for the gradients of outputs, which are written before the backward pass.
    void receive_gradients();
    /// Leaves one gradient of each received value, to be read after the backward pass.
    void finish_received();
    void lay_out_backward(std::size_t node);
    /// Gives the node a place for its part of each gradient that another node writes before it.
    void share_parameter_gradients(Binding& binding);
    /// Adds these parts to the gradients.
    void sum_parameter_gradients(const Binding& binding);
    /// The node's parameters whose gradients no other node is still to write.
    std::vector<ParameterId> completed_parameters(const Node& node);
    /// Names those that no step completes as complete from the start.
    void complete_untrained_parameters();
    /// Brings the number of gradients of `value` down to what its producer can read.
    void sum_gradients(ValueId value, std::size_t limit);
    void place();
    void bind();
    void bind_parameters(const Binding& binding, device::KernelTensors& tensors) const;
    void order_weight_casts();
    bool shares_parameters(const Node& node) const;
    void expose();

    TensorId new_tensor(std::size_t bytes);
    void touch(TensorId tensor);  // alive at the current step
    void add_step(std::vector<Step>& to, Step step);
    std::size_t value_bytes(ValueId value, bool gradient) const;
    bool is_trained(const Node& node) const;
    bool takes_gradient(ValueId value) const;
    bool is_training() const { return options_.mode == device::Mode::training; }
    std::span<std::byte> place_of(TensorId tensor) const;
    void* address(TensorId tensor) const;

    Network& network_;
    const Graph& graph_;
    ParameterStore& store_;
    NetworkOptions options_;

    // Per node, then sums of gradients; places stay where they are while these are added.
    std::deque<Binding> bindings_;
    std::vector<TensorId> values_;                    // per value
    std::vector<std::vector<TensorId>> gradients_;    // per value: written so far, to be summed
    std::map<ValueId, TensorId> output_gradients_;    // of outputs
    std::map<ValueId, TensorId> received_gradients_;  // of received values
    std::vector<int> readers_;      // per parameter: nodes still to write its part
    std::vector<bool> is_written_;  // per parameter: its gradient has a first part
    std::vector<Lifetime> lifetimes_;
    MemoryPlan plan_;
    std::size_t workspace_bytes_ = 0;
    int step_ = 0;
};

}  // namespace hpcai::graph
