// SPDX-License-Identifier: Apache-2.0
#include "network_builder.hpp"

#include <algorithm>

namespace hpcai::graph {
namespace {

using ops::Pass;

constexpr std::size_t kWorkspaceAlignment = 256;  // bytes, as libraries require

bool has_pass(const device::Kernel& kernel, Pass pass) {
    return std::ranges::count(kernel.passes(), pass) > 0;
}

}  // namespace

void Network::Builder::build() {
    build_kernels();
    schedule_forward();
    if (is_training()) schedule_backward();
    allocate();
    bind();
    schedule_prepare_passes();
    publish();
}

void Network::Builder::build_kernels() {
    std::size_t& prepared_bytes = network_.memory_.prepared_bytes;
    for (const Node& node : graph_.nodes()) {
        device::RoundingKey rounding = options_.rounding;
        rounding.node = static_cast<std::uint32_t>(bindings_.size());
        auto kernel = network_.device_.build(
            node.operation,
            {.compute = options_.compute,
             .mode = is_trained(node) ? device::Mode::training : device::Mode::inference,
             .needs_input_gradient = !graph_.needs_no_input_gradient(node),
             .tf32 = options_.tf32,
             .int8 = options_.int8,
             .rounding = rounding,
             .sync_batch_norm_reducer = options_.sync_batch_norm_reducer,
             .exchange = options_.exchange});
        Binding binding{.kernel = kernel.get(), .node = &node, .prepared_offset = prepared_bytes};
        const device::KernelMemory memory = kernel->memory();
        prepared_bytes += align_up(memory.prepared_bytes, kWorkspaceAlignment);
        if (memory.saved_bytes > 0) binding.saved = new_tensor(memory.saved_bytes);
        workspace_bytes_ = std::max(workspace_bytes_, memory.workspace_bytes);
        bindings_.push_back(std::move(binding));
        network_.kernels_.push_back(std::move(kernel));
    }
    for (std::size_t value = 0; value < graph_.values().size(); ++value) {
        values_.push_back(new_tensor(value_bytes(static_cast<ValueId>(value), false)));
    }
    gradients_.resize(values_.size());
}

void Network::Builder::schedule_forward() {
    // The caller writes inputs before the first step, so their lifetimes begin with step 0.
    for (std::size_t value = 0; value < values_.size(); ++value) {
        if (graph_.values()[value].producer == kNoNode) touch(values_[value]);
    }
    for (Binding& binding : bindings_) {
        for (const ValueId input : binding.node->inputs) {
            binding.inputs.push_back(values_[input]);
        }
        touch(binding.inputs);
        binding.output = values_[binding.node->output];
        touch(binding.output);
        touch(binding.saved);
        add_call(network_.forward_calls_, {binding.node->name, Pass::forward, binding.kernel, {}});
    }
    touch_results();
    // The caller reads the outputs of a pipeline stage after the forward pass.
    for (const ValueId output : graph_.outputs()) touch(values_[output]);
}

void Network::Builder::touch_results() {
    for (std::size_t node = 0; node < graph_.nodes().size(); ++node) {
        const bool is_last = node + 1 == graph_.nodes().size();
        if (!is_last && !is_loss(graph_.nodes()[node].operation)) continue;
        touch(bindings_[node].output);
        touch(bindings_[node].saved);
    }
}

void Network::Builder::schedule_backward() {
    pending_writers_.assign(graph_.parameters().size(), 0);
    is_written_.assign(graph_.parameters().size(), false);
    for (const Node& node : graph_.nodes()) {
        if (!is_trained(node)) continue;
        for (const ParameterId parameter : node.parameters) ++pending_writers_[parameter];
    }
    allocate_output_gradients();
    for (std::size_t node = graph_.nodes().size(); node-- > 0;) schedule_backward(node);
    finish_received_gradients();
    complete_untrained_parameters();
    ++step_;
    touch_results();
    for (const auto& [value, gradient] : received_gradients_) touch(gradient);
}

void Network::Builder::allocate_output_gradients() {
    for (const ValueId output : graph_.outputs()) {
        if (!graph_.needs_gradient(output)) continue;
        const TensorId gradient = new_tensor(value_bytes(output, true));
        touch(gradient);
        output_gradients_[output] = gradient;
        gradients_[output].push_back(gradient);
    }
}

void Network::Builder::finish_received_gradients() {
    for (std::size_t index = 0; index < graph_.values().size(); ++index) {
        const auto value = static_cast<ValueId>(index);
        if (!graph_.value(value).is_received || !graph_.needs_gradient(value)) continue;
        sum_gradients(value, 1);
        ensure(gradients_[value].size() == 1, "no step computes the gradient of {}",
               graph_.value(value).name);
        received_gradients_[value] = gradients_[value].front();
    }
}

void Network::Builder::schedule_backward(std::size_t index) {
    const Node& node = graph_.nodes()[index];
    device::Kernel& kernel = *bindings_[index].kernel;
    const bool has_weight_pass = has_pass(kernel, Pass::weight_gradient);
    const bool has_input_pass = has_pass(kernel, Pass::input_gradient);
    if (!has_weight_pass && !has_input_pass) return;
    const ops::BackwardReads reads = kernel.backward_reads();
    sum_gradients(node.output, reads.output_gradients);

    Binding& binding = bindings_[index];
    binding.output_gradients = gradients_[node.output];
    ensure(is_loss(node.operation) || !binding.output_gradients.empty(),
           "node {}: no later node provides the gradient of its output", node.name);
    for (const ValueId input : node.inputs) {
        const bool wanted = has_input_pass && takes_gradient(input);
        binding.input_gradients.push_back(wanted ? new_tensor(value_bytes(input, true)) : kNone);
        if (wanted) gradients_[input].push_back(binding.input_gradients.back());
    }
    allocate_partial_gradients(binding);
    for (const Pass pass : {Pass::weight_gradient, Pass::input_gradient}) {
        if (!has_pass(kernel, pass)) continue;
        touch(binding.output_gradients);
        if (pass == Pass::input_gradient) touch(binding.input_gradients);
        if (reads.inputs) touch(binding.inputs);
        if (reads.output) touch(binding.output);
        touch(binding.saved);
        touch(binding.parameter_gradients);
        add_call(network_.backward_calls_, {node.name, pass, &kernel, {}});
        // The weight pass or, without one, the input pass writes the gradients of parameters.
        if (has_weight_pass != (pass == Pass::weight_gradient)) continue;
        add_partial_gradients(binding);
        std::vector<ParameterId>& complete = network_.backward_calls_.back().final_gradients;
        for (const ParameterId parameter : node.parameters) {
            if (--pending_writers_[parameter] == 0) complete.push_back(parameter);
        }
    }
}

/// Whether the readers of `value` write its gradient, even if its producer is not trained.
bool Network::Builder::takes_gradient(ValueId value) const {
    const NodeId producer = graph_.value(value).producer;
    if (graph_.value(value).is_received) return graph_.needs_gradient(value);
    return producer != kNoNode && is_differentiable(graph_.nodes()[producer].operation);
}

void Network::Builder::allocate_partial_gradients(Binding& binding) {
    for (const ParameterId parameter : binding.node->parameters) {
        const std::size_t bytes = store_.gradient(parameter).size_bytes();
        const bool is_trained = graph_.parameters()[parameter].is_trained;
        const bool is_partial = is_trained && is_written_[parameter];
        binding.parameter_gradients.push_back(is_partial ? new_tensor(bytes) : kNone);
        is_written_[parameter] = is_trained;
    }
}

void Network::Builder::add_partial_gradients(const Binding& writer) {
    for (std::size_t index = 0; index < writer.parameter_gradients.size(); ++index) {
        const TensorId part = writer.parameter_gradients[index];
        if (part == kNone) continue;
        const ParameterId parameter = writer.node->parameters[index];
        const auto elements = static_cast<std::int64_t>(store_.gradient(parameter).size());
        add_sum(graph_.parameters()[parameter].name, {{elements}}, tensor::DType::f32,
                {.inputs = {part}, .sum_into = parameter});
    }
}

void Network::Builder::complete_untrained_parameters() {
    std::vector<bool> is_complete(graph_.parameters().size(), false);
    for (const KernelCall& call : network_.backward_calls_) {
        for (const ParameterId parameter : call.final_gradients) is_complete[parameter] = true;
    }
    for (std::size_t parameter = 0; parameter < is_complete.size(); ++parameter) {
        if (is_complete[parameter]) continue;
        network_.backward_calls_.front().final_gradients.push_back(
            static_cast<ParameterId>(parameter));
    }
}

void Network::Builder::sum_gradients(ValueId value, std::size_t limit) {
    auto& parts = gradients_[value];
    while (parts.size() > limit) {
        Binding sum{.inputs = {parts[parts.size() - 2], parts.back()},
                    .output = new_tensor(value_bytes(value, true))};
        parts.resize(parts.size() - 2);
        parts.push_back(sum.output);
        const Value& summed = graph_.value(value);
        add_sum(summed.name, {summed.shape}, options_.compute, std::move(sum));
    }
}

void Network::Builder::add_sum(const std::string& name, const ops::Add& operation,
                               tensor::DType dtype, Binding sum) {
    auto kernel = network_.device_.build(operation, {dtype, device::Mode::inference, false});
    sum.kernel = kernel.get();
    touch(sum.inputs);
    touch(sum.output);
    add_call(network_.backward_calls_, {name + ".gradient", Pass::forward, kernel.get(), {}});
    bindings_.push_back(std::move(sum));
    network_.kernels_.push_back(std::move(kernel));
}

void Network::Builder::allocate() {
    plan_ = plan_memory(lifetimes_);
    workspace_offset_ = align_up(plan_.total_bytes, kWorkspaceAlignment);
    network_.memory_.arena_bytes =
        workspace_offset_ + align_up(workspace_bytes_, kWorkspaceAlignment);
    try {
        network_.arena_ = network_.device_.allocate(network_.memory_.arena_bytes);
    } catch (const Error& error) {
        throw Error(error.code(), fmt::format("activations and gradients: {}", error.what()));
    }
    if (network_.prepared_ == nullptr) {
        network_.prepared_ = network_.device_.allocate(network_.memory_.prepared_bytes);
    }
    ensure(network_.prepared_->bytes() >= network_.memory_.prepared_bytes,
           "working copies: expected {} bytes, the other network has {}",
           network_.memory_.prepared_bytes, network_.prepared_->bytes());
}

void Network::Builder::bind() {
    const auto addresses = [&](const std::vector<TensorId>& tensors) {
        std::vector<void*> result;
        for (const TensorId tensor : tensors) result.push_back(address(tensor));
        return result;
    };
    for (const Binding& binding : bindings_) {
        device::KernelTensors tensors;
        tensors.inputs = addresses(binding.inputs);
        tensors.output = address(binding.output);
        tensors.output_gradients = addresses(binding.output_gradients);
        tensors.input_gradients = addresses(binding.input_gradients);
        tensors.saved = address(binding.saved);
        tensors.workspace = static_cast<std::byte*>(network_.arena_->data()) + workspace_offset_;
        tensors.prepared =
            static_cast<std::byte*>(network_.prepared_->data()) + binding.prepared_offset;
        tensors.loss_scale = &network_.step_scalars()->loss_scale;
        tensors.scalars = network_.step_scalars();
        if (binding.sum_into >= 0) {
            tensors.output = store_.gradient(binding.sum_into).data();
            tensors.inputs.insert(tensors.inputs.begin(), tensors.output);
        }
        if (binding.node != nullptr) {
            bind_parameters(binding, tensors);
            if (const std::int32_t statistics = binding.node->statistics; statistics >= 0) {
                tensors.running_mean = store_.running_mean(statistics).data();
                tensors.running_variance = store_.running_variance(statistics).data();
            }
            if (const std::int32_t inner = binding.node->inner_statistics; inner >= 0) {
                tensors.inner_running_mean = store_.running_mean(inner).data();
                tensors.inner_running_variance = store_.running_variance(inner).data();
            }
        }
        binding.kernel->bind(tensors);
    }
}

void Network::Builder::bind_parameters(const Binding& binding,
                                       device::KernelTensors& tensors) const {
    const std::vector<ParameterId>& parameters = binding.node->parameters;
    for (std::size_t index = 0; index < parameters.size(); ++index) {
        const TensorId part =
            index < binding.parameter_gradients.size() ? binding.parameter_gradients[index] : kNone;
        tensors.parameters.push_back(store_.parameter(parameters[index]).data());
        tensors.parameter_gradients.push_back(part == kNone
                                                  ? store_.gradient(parameters[index]).data()
                                                  : static_cast<float*>(address(part)));
    }
}

void Network::Builder::schedule_prepare_passes() {
    network_.working_copies_.resize(graph_.parameters().size());
    for (const Binding& binding : bindings_) {
        if (binding.node == nullptr || !has_pass(*binding.kernel, Pass::prepare)) continue;
        const KernelCall call{binding.node->name, Pass::prepare, binding.kernel, {}};
        std::vector<device::WorkingCopy> copies;
        if (is_training() && !shares_parameters(*binding.node)) {
            copies = binding.kernel->working_copies();
        }
        for (const auto& [index, copy] : copies) {
            network_.working_copies_[binding.node->parameters.at(index)] = copy;
        }
        (copies.empty() ? network_.other_copy_calls_ : network_.optimizer_copy_calls_)
            .push_back(call);
    }
}

/// Whether other nodes share the node's parameters. The optimizer cannot write the copies of both.
bool Network::Builder::shares_parameters(const Node& node) const {
    return std::ranges::any_of(graph_.nodes(), [&](const Node& other) {
        const auto shared = std::ranges::find_first_of(other.parameters, node.parameters);
        return &other != &node && shared != other.parameters.end();
    });
}

void Network::Builder::publish() {
    for (std::size_t value = 0; value < values_.size(); ++value) {
        const std::span<std::byte> memory = memory_of(values_[value]);
        network_.values_.push_back(memory);
        if (graph_.values()[value].producer != kNoNode) continue;
        network_.inputs_[graph_.values()[value].name] = memory;
    }
    network_.output_ = memory_of(bindings_[graph_.nodes().size() - 1].output);
    for (std::size_t index = 0; index < graph_.nodes().size(); ++index) {
        const Binding& loss = bindings_[index];
        if (!is_loss(loss.node->operation)) continue;
        // An operation that outputs a softmax stores the losses separately.
        const TensorId losses = outputs_softmax(loss.node->operation) ? loss.saved : loss.output;
        network_.losses_.emplace_back(static_cast<const float*>(address(losses)),
                                      lifetimes_[losses].bytes / sizeof(float));
    }
    for (const auto& [value, gradient] : output_gradients_) {
        network_.output_gradients_[graph_.value(value).name] = memory_of(gradient);
    }
    for (const auto& [value, gradient] : received_gradients_) {
        network_.received_gradients_[graph_.value(value).name] = memory_of(gradient);
    }
    ensure(!is_training() || !network_.losses_.empty() || !graph_.outputs().empty(),
           "a training network has no loss and no outputs");
}

Network::Builder::TensorId Network::Builder::new_tensor(std::size_t bytes) {
    lifetimes_.push_back({bytes, -1, -1});
    return lifetimes_.size() - 1;
}

void Network::Builder::touch(TensorId tensor) {
    if (tensor == kNone) return;
    Lifetime& lifetime = lifetimes_[tensor];
    if (lifetime.first < 0) lifetime.first = step_;
    lifetime.last = step_;
}

void Network::Builder::add_call(std::vector<KernelCall>& to, KernelCall call) {
    to.push_back(std::move(call));
    ++step_;
}

std::size_t Network::Builder::value_bytes(ValueId id, bool gradient) const {
    const Value& value = graph_.value(id);
    const auto bytes = [&](tensor::DType dtype) {
        return network_.device_.storage_bytes(value.shape, dtype);
    };
    if (gradient) return bytes(options_.compute);
    if (value.is_received) return bytes(value.dtype.value_or(options_.compute));
    // The host uploads the graph's inputs without padding.
    if (value.producer == kNoNode) return device::storage_bytes(value.shape, *value.dtype);
    if (value.dtype) return bytes(*value.dtype);
    const auto& operation = graph_.nodes()[value.producer].operation;
    if (!outputs_channel_sums(operation)) return bytes(options_.compute);
    const auto sums = static_cast<std::size_t>(2 * value.shape[3]) * sizeof(float);
    return device::sums_offset(bytes(options_.compute)) + sums;
}

std::span<std::byte> Network::Builder::memory_of(TensorId tensor) const {
    return {static_cast<std::byte*>(address(tensor)), lifetimes_[tensor].bytes};
}

void* Network::Builder::address(TensorId tensor) const {
    if (tensor == kNone) return nullptr;
    return static_cast<std::byte*>(network_.arena_->data()) + plan_.offsets[tensor];
}

void Network::build(ParameterStore& store) {
    ensure(!options_.int8 || device_.has_int8(), "the device does not support int8");
    Builder(*this, store).build();
    std::size_t largest_input_bytes = 0;
    for (const auto& [name, memory] : inputs_) {
        largest_input_bytes = std::max(largest_input_bytes, memory.size());
    }
    device_.reserve_uploads(largest_input_bytes);
}

}  // namespace hpcai::graph
