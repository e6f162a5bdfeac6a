// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include <hpcai/device/device.hpp>
#include <hpcai/graph/graph.hpp>
#include <hpcai/graph/parameter_store.hpp>

namespace hpcai::graph {

/// A call of one pass of a kernel.
struct KernelCall {
    std::string name;  // of the node; for a sum of gradients: "<value or parameter>.gradient"
    ops::Pass pass = ops::Pass::forward;
    device::Kernel* kernel = nullptr;
    // Parameters whose gradients are final after this call. The first call of the backward pass
    // also lists the parameters whose gradients no call writes.
    std::vector<ParameterId> final_gradients;
};

/// Called before and after each kernel call of a network, for timing, tracing and communication.
class Observer {
public:
    virtual ~Observer() = default;
    virtual void before(const KernelCall&) {}
    virtual void after(const KernelCall&) {}
};

struct NetworkOptions {
    device::Mode mode = device::Mode::training;
    tensor::DType compute = tensor::DType::f32;
    bool tf32 = false;  // this and all members below: see device::KernelOptions
    bool int8 = false;
    device::RoundingKey rounding{};  // the network sets rounding.node for each kernel
    device::SyncBatchNormReducer* sync_batch_norm_reducer = nullptr;
    device::ShardExchange* exchange = nullptr;
};

/// Bytes that a built network occupies on its device.
struct NetworkMemory {
    std::size_t arena_bytes = 0;     // values, gradients, saved tensors and workspace
    std::size_t prepared_bytes = 0;  // working copies: parameters converted for the kernels
};

/// A graph built for one device: kernels that are bound to device memory. Its passes allocate no
/// memory, except for messages and inside libraries. Not thread-safe.
class Network {
public:
    /// Builds the kernels and allocates memory. `device` and `store` must outlive the network.
    /// Throws Error(internal) if the device does not support an option.
    Network(Graph graph, device::Device& device, ParameterStore& store,
            const NetworkOptions& options);
    /// A second network with the graph and device of `twin`, for another micro-batch in flight.
    /// The networks share StepScalars and working copies, and either may be destroyed first. Only
    /// `twin` may refresh working copies.
    Network(const Network& twin, ParameterStore& store);
    ~Network();

    const Graph& graph() const { return graph_; }
    const NetworkMemory& memory() const { return memory_; }
    /// The type of activations and their gradients.
    tensor::DType compute() const { return options_.compute; }
    /// The exchange with the other shards; null if the network is not a shard.
    device::ShardExchange* exchange() const { return options_.exchange; }

    /// Copies `bytes`, elements in row-major order of the value's shape, to the input `name`. Every
    /// input must be set before each forward pass, because the pass may overwrite inputs.
    void set_input(const std::string& name, std::span<const std::byte> bytes);
    bool has_input(const std::string& name) const { return inputs_.contains(name); }
    /// The input's elements in device memory, for enqueued work that replaces set_input().
    std::span<std::byte> input(const std::string& name) const;
    /// Sets StepScalars::loss_scale, the factor of each sample's loss gradients, and resets all
    /// other fields. With scale = 1 / global batch, the gradients are those of the mean loss.
    void reset_step_scalars(float scale);
    /// The step scalars (ops/optimizer_rule.hpp) in device memory.
    device::StepScalars* step_scalars() const {
        return static_cast<device::StepScalars*>(step_scalars_->data());
    }
    /// A copy of the step scalars. Waits for the work enqueued on the device.
    device::StepScalars read_step_scalars() const;

    /// Refreshes all working copies. Required after the parameters have changed.
    void prepare(Observer& observer) {
        prepare_optimizer_copies(observer);
        prepare_other_copies(observer);
    }
    /// Refreshes the copies that working_copy() returns. Not needed if an optimizer update wrote
    /// them.
    void prepare_optimizer_copies(Observer& observer) { run(optimizer_copy_calls_, observer); }
    /// Refreshes all other working copies.
    void prepare_other_copies(Observer& observer) { run(other_copy_calls_, observer); }
    /// The working copy that an optimizer update may write (Kernel::working_copies()), in training
    /// networks; null if there is none.
    void* working_copy(ParameterId parameter) const {
        return working_copies_.at(static_cast<std::size_t>(parameter));
    }
    void forward(Observer& observer) { run(forward_calls_, observer); }
    /// Overwrites the gradient of every trained parameter. Training mode only.
    void backward(Observer& observer) { run(backward_calls_, observer); }

    /// The kernel calls of prepare_other_copies(), forward() and backward(), in order.
    std::vector<KernelCall> calls() const;

    /// The value `name` in device memory, in the device's layout. It is valid from the call of its
    /// producer until the last call that reads it. Throws Error(internal) if there is no such
    /// value.
    std::span<const std::byte> value(const std::string& name) const;
    /// Copies the last node's output of the last forward pass to the host: the softmax (N,
    /// classes), (N, cells, classes) for segmentation, or ops::Detections' output for a detector.
    void read_output(std::span<float> to) const;
    /// The losses of the samples in the last forward pass, in device memory: one span for each node
    /// that computes losses, in order, with (N) numbers, or (N, 2) in a detector
    /// (ops/detection.hpp).
    const std::vector<std::span<const float>>& losses() const { return losses_; }

    /// Memory for the gradient of a pipeline stage's output `name`, in the layout of the value and
    /// the compute type. The caller writes it between the forward and the backward pass.
    std::span<std::byte> output_gradient(const std::string& name) const;
    /// The gradient of input `name` from an earlier stage, which the backward pass writes.
    std::span<const std::byte> received_gradient(const std::string& name) const;

private:
    class Builder;

    void build(ParameterStore& store);
    static void run(const std::vector<KernelCall>& calls, Observer& observer) {
        for (const KernelCall& call : calls) {
            observer.before(call);
            call.kernel->run(call.pass);
            observer.after(call);
        }
    }

    Graph graph_;
    device::Device& device_;
    NetworkOptions options_;
    NetworkMemory memory_;
    std::unique_ptr<device::Memory> arena_;
    std::shared_ptr<device::Memory> prepared_, step_scalars_;
    std::vector<std::unique_ptr<device::Kernel>> kernels_;
    std::vector<KernelCall> optimizer_copy_calls_, other_copy_calls_, forward_calls_,
        backward_calls_;
    std::vector<void*> working_copies_;  // [parameter]
    std::map<std::string, std::span<std::byte>> inputs_, output_gradients_, received_gradients_;
    std::vector<std::span<const std::byte>> values_;  // per value of the graph
    std::span<const std::byte> output_;
    std::vector<std::span<const float>> losses_;
};

/// A tensor that must exist from the kernel call with index `first` to that with index `last`.
struct Lifetime {
    std::size_t bytes = 0;
    int first = 0;
    int last = 0;
};

struct MemoryPlan {
    std::vector<std::size_t> offsets;  // [lifetime] in bytes, 64-byte aligned
    std::size_t total_bytes = 0;
};

/// Assigns offsets in one block such that tensors with overlapping lifetimes do not share memory.
/// Places tensors by descending size, each at the lowest offset that is free during its lifetime.
MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes);

}  // namespace hpcai::graph
