// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/device/device.hpp>

#include "device/device_rows.hpp"
#include "support/load_values.hpp"
#include "support/naive_ops.hpp"
#include "support/number_bits.hpp"

/// Runs one kernel of a device on a naive::Problem. All memory is poisoned first, so that reads of
/// other memory and missing writes give NaN. Writes past the end of a buffer are detected.
namespace hpcai::device {

/// Device memory full of NaNs, with a guard after its end.
class Buffer {
public:
    Buffer(Device& device, std::size_t bytes)
        : device_(&device), bytes_(bytes), memory_(device.allocate(bytes + kGuard)) {
        device_->upload(memory_->data(), std::vector<std::byte>(bytes + kGuard, kPoison));
    }
    void* data() const { return memory_->data(); }
    bool guard_is_whole() const {
        std::vector<std::byte> guard(kGuard);
        device_->download(guard, static_cast<const std::byte*>(memory_->data()) + bytes_);
        return std::all_of(guard.begin(), guard.end(), [](auto byte) { return byte == kPoison; });
    }

private:
    static constexpr std::size_t kGuard = 256;
    static constexpr std::byte kPoison{0xff};
    Device* device_;
    std::size_t bytes_;
    std::unique_ptr<Memory> memory_;
};

class KernelRunner {
public:
    KernelRunner(const DeviceRow& row, const naive::Problem& problem,
                 SyncBatchNormReducer* sync_batch_norm_reducer = nullptr)
        : compute_(row.compute),
          problem_(problem),
          device_(row.make()),
          kernel_(device_->build(problem.operation,
                                 {.compute = compute_,
                                  .mode = problem.training ? Mode::training : Mode::inference,
                                  .needs_input_gradient = !problem.is_first_layer,
                                  .tf32 = row.tf32,
                                  .int8 = row.int8,
                                  .rounding = row.rounding,
                                  .sync_batch_norm_reducer = sync_batch_norm_reducer})) {
        for (std::size_t i = 0; i < problem.inputs.size(); ++i) add_input(i);
        output_ = bytes(value_bytes(output_shape(problem.operation), output_dtype(),
                                    outputs_channel_sums(problem.operation)));
        for (const auto& gradient : problem.output_gradients) {
            tensors_.output_gradients.push_back(stored(gradient, compute_));
        }
        tensors_.output = output_;
        for (const auto& parameter : problem.parameters) {
            tensors_.parameters.push_back(plain(parameter));
            tensors_.parameter_gradients.push_back(plain(naive::Tensor(parameter.shape, kNan)));
        }
        tensors_.running_mean = plain(problem.running_mean);
        tensors_.running_variance = plain(problem.running_variance);
        tensors_.inner_running_mean = plain(problem.running_mean);
        tensors_.inner_running_variance = plain(problem.running_variance);
        tensors_.loss_scale = plain(naive::Tensor({1}, problem.loss_scale));
        tensors_.scalars = stored(row.step);
        const KernelMemory memory = kernel_->memory();
        tensors_.saved = bytes(memory.saved_bytes);
        tensors_.prepared = bytes(memory.prepared_bytes);
        tensors_.workspace = bytes(memory.workspace_bytes);
    }

    /// Runs all passes in order and returns all results. Unwanted input gradients have a null
    /// address.
    naive::Solution run(const std::vector<bool>& wanted_input_gradients = {}) {
        for (std::size_t i = 0; i < wanted_input_gradients.size(); ++i) {
            if (!wanted_input_gradients[i]) tensors_.input_gradients[i] = nullptr;
        }
        if (problem_.output_gradients.size() > kernel_->backward_reads().output_gradients) {
            throw Error(ExitCode::internal, "more gradients than the kernel reads");
        }
        kernel_->bind(tensors_);
        for (const ops::Pass pass : kernel_->passes()) kernel_->run(pass);
        device_->synchronize();
        EXPECT_TRUE(std::all_of(buffers_.begin(), buffers_.end(), [](const Buffer& buffer) {
            return buffer.guard_is_whole();
        })) << "written past the end";
        return read();
    }

private:
    static constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

    bool is_loss() const { return ops::is_loss(problem_.operation); }
    /// Returns whether the losses are stored next to the output.
    bool has_softmax() const { return outputs_softmax(problem_.operation); }
    tensor::DType output_dtype() const {
        return ops::output_dtype(problem_.operation).value_or(compute_);
    }

    void* bytes(std::size_t count) {
        buffers_.emplace_back(*device_, count);
        return buffers_.back().data();
    }
    std::size_t value_bytes(const tensor::Shape& shape, tensor::DType dtype, bool sums) const {
        const std::size_t elements = device_->storage_bytes(shape, dtype);
        if (!sums) return elements;
        return sums_offset(elements) + 2 * static_cast<std::size_t>(shape[3]) * sizeof(float);
    }
    void* image(const tensor::Shape& shape, tensor::DType dtype) {
        return bytes(value_bytes(shape, dtype, false));
    }
    static float* sums_of(void* value, std::size_t element_bytes) {
        return reinterpret_cast<float*>(static_cast<std::byte*>(value) +
                                        sums_offset(element_bytes));
    }
    void* stored(const naive::Tensor& tensor, tensor::DType dtype, bool sums = false) {
        void* to = bytes(value_bytes(tensor.shape, dtype, sums));
        const std::vector<float> values(tensor.values.begin(), tensor.values.end());
        device_->store_channels_last(to, tensor.shape, dtype, values);
        if (sums) {
            const naive::Tensor of_channels = naive::channel_sums(tensor);
            const std::vector<float> numbers(of_channels.values.begin(), of_channels.values.end());
            device_->upload(sums_of(to, device_->storage_bytes(tensor.shape, dtype)),
                            std::as_bytes(std::span(numbers)));
        }
        return to;
    }
    /// Returns whether input `index` carries sums.
    bool reads_sums(std::size_t index) const {
        if (const auto* op = std::get_if<ops::DualNorm>(&problem_.operation)) {
            return index == 0 ? op->outer.from_sums : op->inner.from_sums;
        }
        if (const auto* op = std::get_if<ops::NormPool>(&problem_.operation)) {
            return op->norm.from_sums;
        }
        const auto* op = std::get_if<ops::BatchNorm>(&problem_.operation);
        return op != nullptr && op->from_sums && index == 0;
    }
    template <typename Number>
    Number* plain(const naive::Tensor& tensor) {
        const std::vector<Number> values(tensor.values.begin(), tensor.values.end());
        void* to = bytes(values.size() * sizeof(Number));
        device_->upload(to, std::as_bytes(std::span(values)));
        return static_cast<Number*>(to);
    }
    float* plain(const naive::Tensor& tensor) { return plain<float>(tensor); }
    StepScalars* stored(const StepScalars& step) {
        void* to = bytes(sizeof(StepScalars));
        device_->upload(to, std::as_bytes(std::span(&step, 1)));
        return static_cast<StepScalars*>(to);
    }

    /// Returns the type of input `index`.
    tensor::DType input_dtype(std::size_t index) const {
        using tensor::DType;
        const ops::Operation& operation = problem_.operation;
        if (const auto* op = std::get_if<ops::InputNormalize>(&operation)) return op->dtype;
        const tensor::Shape& shape = problem_.inputs[index].shape;
        if (shape.rank() == 1 && index > 0) return DType::s32;  // labels and keys
        const bool of_head = shape.rank() == 2 && (is_loss() || !is_differentiable(operation));
        return shape.rank() == 3 || of_head ? DType::f32 : compute_;
    }

    void add_input(std::size_t index) {
        const naive::Tensor& input = problem_.inputs[index];
        const tensor::DType dtype = input_dtype(index);
        const bool normalizes = std::holds_alternative<ops::InputNormalize>(problem_.operation);
        const bool is_plain = normalizes || input.shape.rank() == 3 || dtype == tensor::DType::s32;
        tensors_.inputs.push_back(is_plain ? plain(input, dtype)
                                           : stored(input, dtype, reads_sums(index)));
        const bool has_gradient =
            !is_plain && is_differentiable(problem_.operation) && !problem_.is_first_layer;
        tensors_.input_gradients.push_back(has_gradient ? image(input.shape, compute_) : nullptr);
    }
    /// In host order, like uploaded inputs.
    void* plain(const naive::Tensor& tensor, tensor::DType dtype) {
        if (dtype == tensor::DType::u8) return plain<std::uint8_t>(tensor);
        if (dtype == tensor::DType::s32) return plain<std::int32_t>(tensor);
        if (dtype == tensor::DType::f32) return plain<float>(tensor);
        std::vector<std::uint16_t> bits;
        for (const double value : tensor.values) bits.push_back(tests::bits_of(value, dtype));
        void* to = bytes(bits.size() * sizeof(std::uint16_t));
        device_->upload(to, std::as_bytes(std::span(bits)));
        return to;
    }

    naive::Tensor load(const void* from, const tensor::Shape& shape, tensor::DType dtype) const {
        naive::Tensor tensor;
        if (from == nullptr) return tensor;
        if (shape.rank() == 3) return load_plain(static_cast<const float*>(from), shape);
        std::vector<float> values(static_cast<std::size_t>(shape.elements()));
        load_channels_last(*device_, values, shape, dtype, from);
        tensor.shape = shape;
        tensor.values.assign(values.begin(), values.end());
        return tensor;
    }

    naive::Tensor load_plain(const float* from, const tensor::Shape& shape) const {
        std::vector<float> values(static_cast<std::size_t>(shape.elements()));
        device_->download(std::as_writable_bytes(std::span(values)), from);
        naive::Tensor tensor;
        tensor.shape = shape;
        tensor.values.assign(values.begin(), values.end());
        return tensor;
    }

    naive::Solution read() const {
        naive::Solution solution;
        const tensor::Shape shape_of_output = output_shape(problem_.operation);
        solution.output = load(output_, shape_of_output, output_dtype());
        if (outputs_channel_sums(problem_.operation)) {
            solution.sums =
                load_plain(sums_of(output_, device_->storage_bytes(shape_of_output, compute_)),
                           {2, shape_of_output[3]});
        }
        if (has_softmax()) {
            solution.losses =
                load_plain(static_cast<float*>(tensors_.saved), {problem_.inputs[0].shape[0]});
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
            const tensor::Shape& shape = problem_.running_mean.shape;
            solution.running_mean = load_plain(tensors_.running_mean, shape);
            solution.running_variance = load_plain(tensors_.running_variance, shape);
        }
        return solution;
    }

    tensor::DType compute_;
    const naive::Problem& problem_;
    std::unique_ptr<Device> device_;
    std::unique_ptr<Kernel> kernel_;
    std::vector<Buffer> buffers_;
    KernelTensors tensors_;
    void* output_ = nullptr;
};

inline void expect_close(const naive::Tensor& got, const naive::Tensor& want, double tolerance,
                         const std::string& what) {
    ASSERT_EQ(got.values.size(), want.values.size()) << what;
    double largest = 1e-30;
    for (const double value : want.values) largest = std::max(largest, std::abs(value));
    for (std::size_t i = 0; i < want.values.size(); ++i) {
        ASSERT_NEAR(got.values[i], want.values[i], tolerance * largest) << what << " at " << i;
    }
}

inline void expect_agreement(const DeviceRow& row, const naive::Problem& problem,
                             const Tolerance& tolerance) {
    SCOPED_TRACE(std::string(name_of(problem.operation)) + " of " +
                 to_string(problem.inputs[0].shape));
    const naive::Solution got = KernelRunner(row, problem).run();
    const naive::Solution want = naive::solve(problem);
    const bool fp32 = output_dtype(problem.operation) == tensor::DType::f32;
    expect_close(got.output, want.output, fp32 ? tolerance.fp32 : tolerance.stored, "output");
    expect_close(got.sums, want.sums, tolerance.stored, "sums");
    expect_close(got.losses, want.losses, tolerance.fp32, "losses");
    expect_close(got.running_mean, want.running_mean, tolerance.fp32, "running mean");
    expect_close(got.running_variance, want.running_variance, tolerance.fp32, "running variance");
    if (!problem.training) return;
    for (std::size_t i = 0; i < want.input_gradients.size(); ++i) {
        expect_close(got.input_gradients[i], want.input_gradients[i], tolerance.stored,
                     "input gradient " + std::to_string(i));
    }
    const bool filters = std::holds_alternative<ops::Convolution>(problem.operation);
    for (std::size_t i = 0; i < want.parameter_gradients.size(); ++i) {
        expect_close(got.parameter_gradients[i], want.parameter_gradients[i],
                     filters ? tolerance.filters : tolerance.fp32,
                     "parameter gradient " + std::to_string(i));
    }
}

inline void expect_agreement(const DeviceRow& row, const naive::Problem& problem) {
    expect_agreement(row, problem, row.tolerance);
}

}  // namespace hpcai::device
