// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <hpcai/device/device.hpp>
#include <hpcai/graph/graph.hpp>
#include <hpcai/graph/parameter_store.hpp>

namespace hpcai::graph {

/// One kernel call of a training step.
struct Step {
    std::string name;  // of the node; "<value>.gradient" for a sum of gradients
    ops::Pass pass = ops::Pass::forward;
    device::Kernel* kernel = nullptr;
    std::vector<ParameterId> final_gradients;  // parameters whose gradient is complete after it
};

/// Sees every step of a network run; timing, tracing and communication hang here.
class Observer {
public:
    virtual ~Observer() = default;
    virtual void before(const Step&) {}
    virtual void after(const Step&) {}
};

struct NetworkOptions {
    device::Mode mode = device::Mode::training;
    tensor::DType compute = tensor::DType::f32;
    bool tf32 = false;                                                // see device::KernelOptions
    bool int8 = false;                                                // likewise
    device::RoundingKey rounding{};                                   // but for the node
    device::SyncBatchNormReducer* sync_batch_norm_reducer = nullptr;  // likewise
    device::ShardExchange* exchange = nullptr;                        // likewise
};

/// Bytes a built network holds on its device.
struct NetworkMemory {
    std::size_t arena_bytes = 0;     // values, gradients, saved tensors and scratch, by lifetime
    std::size_t prepared_bytes = 0;  // working copies of the parameters
};

/// A graph built for one device: planned kernels bound to planned memory. Running it allocates
/// nothing but messages to other ranks. Not for use by several threads at once.
class Network {
public:
    /// Plans and binds everything; the graph is copied, device and store must outlive the network.
    /// Throws Error(internal) where the device does not serve an option.
    Network(Graph graph, device::Device& device, ParameterStore& store,
            const NetworkOptions& options);
    /// A further one of the twin's graph, device and store, for another batch at the same time. It
    /// works with the twin's working copies, which the twin alone refreshes, and its step numbers,
    /// and keeps them alive.
    Network(const Network& twin, ParameterStore& store);
    ~Network();
    Network(const Network&) = delete;
    Network& operator=(const Network&) = delete;

    const Graph& graph() const { return graph_; }
    const NetworkMemory& memory() const { return memory_; }
    /// The type of activations and their gradients.
    tensor::DType compute() const { return options_.compute; }
    /// With the other parts, where it is a part of a network; else null.
    device::ShardExchange* exchange() const { return options_.exchange; }

    /// Sets the input value `name`; `bytes` are its elements in canonical layout, of which a copy
    /// is taken. Every input is set anew before each forward pass, which may use its memory for
    /// other values once it has been read.
    void set_input(const std::string& name, std::span<const std::byte> bytes);
    bool has_input(const std::string& name) const { return inputs_.contains(name); }
    /// Its elements in device memory, for work enqueued in place of set_input() to write.
    std::span<std::byte> input(const std::string& name) const;
    /// Factor on the gradients of the rows' losses, 1 at first, which forgets the other numbers of
    /// a step. With 1 / global batch gradients are those of the mean loss.
    void set_loss_scale(float scale);
    /// In device memory.
    device::StepScalars* step_scalars() const {
        return static_cast<device::StepScalars*>(numbers_->data());
    }
    /// A copy; waits for the work enqueued on the device.
    device::StepScalars read_step_numbers() const;

    /// Refreshes working copies after the parameters have changed: prepare_copies() and
    /// prepare_rest().
    void prepare(Observer& observer) {
        prepare_copies(observer);
        prepare_rest(observer);
    }
    /// What an update does that writes every working_copy() with its parameter.
    void prepare_copies(Observer& observer) { run(prepare_copies_steps_, observer); }
    /// What is left to do after such an update.
    void prepare_rest(Observer& observer) { run(prepare_rest_steps_, observer); }
    /// Where an update of this training network's parameters may write one of them, as
    /// Kernel::working_copies() has it; null for none.
    void* working_copy(ParameterId parameter) const {
        return working_copies_.at(static_cast<std::size_t>(parameter));
    }
    void forward(Observer& observer) { run(forward_steps_, observer); }
    /// Overwrites every parameter's gradient. Training mode only.
    void backward(Observer& observer) { run(backward_steps_, observer); }

    /// All steps of a training step in order, to be run one by one, after an update that writes
    /// working copies.
    std::vector<Step> steps() const;

    /// Where the value `name` is kept in device memory, in the layout of its shape and type. It is
    /// there from its producer's step on until the last step that reads it. Throws Error(internal)
    /// when there is no such value.
    std::span<const std::byte> value(const std::string& name) const;
    /// Copies the last node's output of the last forward pass to the host: the softmax
    /// (N, classes) of a classifier, the detections (N, limit, 6) of a detector.
    void read_output(std::span<float> to) const;
    /// The samples' losses of the last forward pass, in device memory: one span for each node that
    /// computes losses, in their order, of (N) or, of a detector's, (N, 2) numbers.
    const std::vector<std::span<const float>>& losses() const { return losses_; }

    /// Where the gradient of the output `name` of a stage is to be written between forward and
    /// backward pass, in the layout of its value in the type of activations.
    std::span<std::byte> output_gradient(const std::string& name) const;
    /// Where the gradient of the received value `name` is after the backward pass, likewise.
    std::span<const std::byte> received_gradient(const std::string& name) const;

private:
    class Builder;

    void build(ParameterStore& store);
    void plan(ParameterStore& store);  // kernels, steps and places, by the builder
    static void run(const std::vector<Step>& steps, Observer& observer) {
        for (const Step& step : steps) {
            observer.before(step);
            step.kernel->run(step.pass);
            observer.after(step);
        }
    }

    Graph graph_;
    device::Device& device_;
    NetworkOptions options_;
    NetworkMemory memory_;
    std::unique_ptr<device::Memory> arena_;
    std::shared_ptr<device::Memory> prepared_, numbers_;
    std::vector<std::unique_ptr<device::Kernel>> kernels_;
    std::vector<Step> prepare_copies_steps_, prepare_rest_steps_, forward_steps_, backward_steps_;
    std::vector<void*> working_copies_;  // [parameter]
    std::map<std::string, std::span<std::byte>> inputs_, output_gradients_, received_gradients_;
    std::vector<std::span<const std::byte>> values_;  // per value of the graph
    std::span<const std::byte> output_;
    std::vector<std::span<const float>> losses_;
};

}  // namespace hpcai::graph
