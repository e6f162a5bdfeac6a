// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include <hpcai/base/error.hpp>
#include <hpcai/reference/load_values.hpp>
#include <hpcai/reference/problem_runner.hpp>
#include <hpcai/tensor/half.hpp>

namespace hpcai::naive {
namespace {

using device::Mode;
using tensor::DType;

device::KernelOptions options_for(const Problem& problem, device::KernelOptions options) {
    options.mode = problem.training ? Mode::training : Mode::inference;
    options.needs_input_gradient = !problem.is_first_layer;
    return options;
}

/// Returns whether channel sums follow the elements of input `index`.
bool reads_sums(const ops::Operation& operation, std::size_t index) {
    if (const auto* op = std::get_if<ops::DualNorm>(&operation)) {
        return index == 0 ? op->outer.from_sums : op->inner.from_sums;
    }
    if (const auto* op = std::get_if<ops::NormPool>(&operation)) return op->norm.from_sums;
    const auto* op = std::get_if<ops::BatchNorm>(&operation);
    return op != nullptr && op->from_sums && index == 0;
}

float* sums_after(const void* value, std::size_t element_bytes) {
    auto* const begin = static_cast<std::byte*>(const_cast<void*>(value));
    return reinterpret_cast<float*>(begin + device::sums_offset(element_bytes));
}

}  // namespace

ProblemRunner::ProblemRunner(device::Device& device, const Options& options, const Problem& problem)
    : problem_(problem),
      device_(device),
      compute_(options.kernel.compute),
      kernel_(device.build(problem.operation, options_for(problem, options.kernel))) {
    ensure(problem.output_gradients.size() <= kernel_->backward_reads().output_gradients,
           "the kernel cannot sum {} output gradients", problem.output_gradients.size());
    const std::vector<bool>& wanted = options.wanted_input_gradients;
    for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
        add_input(i, i >= wanted.size() || wanted[i]);
    }
    tensors_.output = allocate(value_bytes(output_shape(problem.operation), output_dtype(),
                                           outputs_channel_sums(problem.operation)));
    for (const Tensor& gradient : problem.output_gradients) {
        tensors_.output_gradients.push_back(stored(gradient, compute_));
    }
    add_parameters();
    tensors_.loss_scale = plain<float>(Tensor({1}, problem.loss_scale));
    void* const step = allocate(sizeof(device::StepScalars));
    device_.upload(step, std::as_bytes(std::span(&options.step, 1)));
    tensors_.scalars = static_cast<device::StepScalars*>(step);
    const device::KernelMemory memory = kernel_->memory();
    tensors_.saved = allocate(memory.saved_bytes);
    tensors_.prepared = allocate(memory.prepared_bytes);
    tensors_.workspace = allocate(memory.workspace_bytes);
    kernel_->bind(tensors_);
}

void ProblemRunner::add_parameters() {
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    for (const Tensor& parameter : problem_.parameters) {
        tensors_.parameters.push_back(plain<float>(parameter));
        tensors_.parameter_gradients.push_back(plain<float>(Tensor(parameter.shape, kNan)));
    }
    tensors_.running_mean = plain<float>(problem_.running_mean);
    tensors_.running_variance = plain<float>(problem_.running_variance);
    tensors_.inner_running_mean = plain<float>(problem_.running_mean);
    tensors_.inner_running_variance = plain<float>(problem_.running_variance);
}

void ProblemRunner::reset_statistics() {
    const auto reset = [&](float* to, const Tensor& numbers) {
        const std::vector<float> values(numbers.values.begin(), numbers.values.end());
        device_.upload(to, std::as_bytes(std::span(values)));
    };
    reset(tensors_.running_mean, problem_.running_mean);
    reset(tensors_.running_variance, problem_.running_variance);
    reset(tensors_.inner_running_mean, problem_.running_mean);
    reset(tensors_.inner_running_variance, problem_.running_variance);
}

void ProblemRunner::run() {
    reset_statistics();
    for (const ops::Pass pass : kernel_->passes()) kernel_->run(pass);
    device_.synchronize();
}

bool ProblemRunner::wrote_past_end() const {
    return !std::ranges::all_of(buffers_, &device::Buffer::guard_is_intact);
}

DType ProblemRunner::output_dtype() const {
    return ops::output_dtype(problem_.operation).value_or(compute_);
}

void* ProblemRunner::allocate(std::size_t bytes) {
    buffers_.emplace_back(device_, bytes);
    return buffers_.back().data();
}

std::size_t ProblemRunner::value_bytes(const Shape& shape, DType dtype, bool sums) const {
    const std::size_t elements = device_.storage_bytes(shape, dtype);
    if (!sums) return elements;
    return device::sums_offset(elements) + 2 * static_cast<std::size_t>(shape[3]) * sizeof(float);
}

void* ProblemRunner::stored(const Tensor& tensor, DType dtype, bool sums) {
    void* const to = allocate(value_bytes(tensor.shape, dtype, sums));
    const std::vector<float> values(tensor.values.begin(), tensor.values.end());
    device_.store_channels_last(to, tensor.shape, dtype, values);
    if (sums) {
        const Tensor of_channels = channel_sums(tensor);
        const std::vector<float> numbers(of_channels.values.begin(), of_channels.values.end());
        device_.upload(sums_after(to, device_.storage_bytes(tensor.shape, dtype)),
                       std::as_bytes(std::span(numbers)));
    }
    return to;
}

template <typename Number>
Number* ProblemRunner::plain(const Tensor& tensor) {
    const std::vector<Number> values(tensor.values.begin(), tensor.values.end());
    void* const to = allocate(values.size() * sizeof(Number));
    device_.upload(to, std::as_bytes(std::span(values)));
    return static_cast<Number*>(to);
}

void* ProblemRunner::plain(const Tensor& tensor, DType dtype) {
    if (dtype == DType::u8) return plain<std::uint8_t>(tensor);
    if (dtype == DType::s32) return plain<std::int32_t>(tensor);
    if (dtype == DType::f32) return plain<float>(tensor);
    std::vector<std::uint16_t> bits;
    for (const double value : tensor.values) {
        const auto number = static_cast<float>(value);
        bits.push_back(dtype == DType::f16 ? tensor::to_f16(number) : tensor::to_bf16(number));
    }
    void* const to = allocate(bits.size() * sizeof(std::uint16_t));
    device_.upload(to, std::as_bytes(std::span(bits)));
    return to;
}

DType ProblemRunner::input_dtype(std::size_t index) const {
    const ops::Operation& operation = problem_.operation;
    if (const auto* op = std::get_if<ops::InputNormalize>(&operation)) return op->dtype;
    const Shape& shape = problem_.inputs[index].shape;
    if (shape.rank() == 1 && index > 0) return DType::s32;  // labels and keys
    const bool is_head_output =  // a Linear layer without a ReLU has an fp32 output
        shape.rank() == 2 && (ops::is_loss(operation) || !is_differentiable(operation));
    return shape.rank() == 3 || is_head_output ? DType::f32 : compute_;
}

void ProblemRunner::add_input(std::size_t index, bool is_wanted) {
    const Tensor& input = problem_.inputs[index];
    const DType dtype = input_dtype(index);
    const bool is_plain = std::holds_alternative<ops::InputNormalize>(problem_.operation) ||
                          input.shape.rank() == 3 || dtype == DType::s32;
    tensors_.inputs.push_back(is_plain
                                  ? plain(input, dtype)
                                  : stored(input, dtype, reads_sums(problem_.operation, index)));
    const bool has_gradient =
        is_wanted && !is_plain && is_differentiable(problem_.operation) && !problem_.is_first_layer;
    tensors_.input_gradients.push_back(
        has_gradient ? allocate(value_bytes(input.shape, compute_, false)) : nullptr);
}

const float* ProblemRunner::sums_of_output() const {
    const Shape shape = output_shape(problem_.operation);
    return sums_after(tensors_.output, device_.storage_bytes(shape, compute_));
}

Tensor ProblemRunner::load(const void* from, const Shape& shape, DType dtype) const {
    if (from == nullptr) return {};
    if (shape.rank() == 3) return load_plain(static_cast<const float*>(from), shape);
    std::vector<float> values(static_cast<std::size_t>(shape.elements()));
    device::load_channels_last(device_, values, shape, dtype, from);
    Tensor tensor(shape);
    tensor.values.assign(values.begin(), values.end());
    return tensor;
}

Tensor ProblemRunner::load_plain(const float* from, const Shape& shape) const {
    std::vector<float> values(static_cast<std::size_t>(shape.elements()));
    device_.download(std::as_writable_bytes(std::span(values)), from);
    Tensor tensor(shape);
    tensor.values.assign(values.begin(), values.end());
    return tensor;
}

Solution ProblemRunner::read() const {
    Solution solution;
    const ops::Operation& operation = problem_.operation;
    const Shape shape_of_output = output_shape(operation);
    solution.output = load(tensors_.output, shape_of_output, output_dtype());
    if (outputs_channel_sums(operation)) {
        solution.sums = load_plain(sums_of_output(), {2, shape_of_output[3]});
    }
    if (outputs_softmax(operation)) {
        solution.losses =
            load_plain(static_cast<const float*>(tensors_.saved), {problem_.inputs[0].shape[0]});
    }
    for (std::size_t i = 0; i < problem_.inputs.size(); ++i) {
        solution.input_gradients.push_back(
            load(tensors_.input_gradients[i], problem_.inputs[i].shape, compute_));
    }
    for (std::size_t i = 0; i < problem_.parameters.size(); ++i) {
        solution.parameter_gradients.push_back(
            load_plain(tensors_.parameter_gradients[i], problem_.parameters[i].shape));
    }
    if (!problem_.running_mean.values.empty()) {
        const Shape& shape = problem_.running_mean.shape;
        solution.running_mean = load_plain(tensors_.running_mean, shape);
        solution.running_variance = load_plain(tensors_.running_variance, shape);
        if (std::holds_alternative<ops::DualNorm>(operation)) {
            solution.inner_running_mean = load_plain(tensors_.inner_running_mean, shape);
            solution.inner_running_variance = load_plain(tensors_.inner_running_variance, shape);
        }
    }
    return solution;
}

std::vector<std::byte> ProblemRunner::bits() const {
    std::vector<std::byte> all;
    const auto add = [&](const void* from, std::size_t count) {
        all.resize(all.size() + count);
        device_.download(std::span(all).last(count), from);
    };
    const auto floats = [](const Tensor& like) { return like.values.size() * sizeof(float); };
    const ops::Operation& operation = problem_.operation;
    add(tensors_.output,
        value_bytes(output_shape(operation), output_dtype(), outputs_channel_sums(operation)));
    if (outputs_softmax(operation)) {
        add(tensors_.saved, floats(Tensor({problem_.inputs[0].shape[0]})));
    }
    for (std::size_t i = 0; i < problem_.inputs.size(); ++i) {
        if (tensors_.input_gradients[i] == nullptr) continue;
        add(tensors_.input_gradients[i], value_bytes(problem_.inputs[i].shape, compute_, false));
    }
    for (std::size_t i = 0; i < problem_.parameters.size(); ++i) {
        add(tensors_.parameter_gradients[i], floats(problem_.parameters[i]));
    }
    add(tensors_.running_mean, floats(problem_.running_mean));
    add(tensors_.running_variance, floats(problem_.running_variance));
    add(tensors_.inner_running_mean, floats(problem_.running_mean));
    add(tensors_.inner_running_variance, floats(problem_.running_variance));
    return all;
}

}  // namespace hpcai::naive
