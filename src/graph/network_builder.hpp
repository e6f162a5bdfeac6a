// SPDX-License-Identifier: Apache-2.0
#pragma once

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
        TensorId saved = kNone;
        std::size_t prepared_offset = 0;
    };

    void plan_kernels();
    void lay_out_forward();
    void lay_out_backward();
    void lay_out_backward(std::size_t node);
    /// Brings the number of gradients of `value` down to what its producer can read.
    void sum_gradients(ValueId value, std::size_t limit);
    void place();
    void bind();
    void divide_prepare();
    void expose();

    TensorId new_tensor(std::size_t bytes);
    void touch(TensorId tensor);  // alive at the current step
    void add_step(std::vector<Step>& to, Step step);
    std::size_t value_bytes(ValueId value, bool gradient) const;
    bool is_training() const { return options_.mode == device::Mode::training; }
    void* address(TensorId tensor) const;

    Network& network_;
    const Graph& graph_;
    ParameterStore& store_;
    NetworkOptions options_;

    std::vector<Binding> bindings_;                 // per node, then sums of gradients
    std::vector<TensorId> values_;                  // per value
    std::vector<std::vector<TensorId>> gradients_;  // per value: written so far, to be summed
    std::vector<Lifetime> lifetimes_;
    MemoryPlan plan_;
    std::size_t workspace_bytes_ = 0;
    int step_ = 0;
};

}  // namespace hpcai::graph
