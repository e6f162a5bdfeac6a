// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/device/cpu_device.hpp>

#include "support/naive_ops.hpp"

/// Runs one kernel of a device on a naive::Problem. All memory is poisoned before: whatever a
/// kernel reads without having been given it, or leaves unwritten, comes out as NaN, and writing
/// past the end of a buffer is noticed.
namespace hpcai::device {

/// A way to run the CPU engine.
struct Setting {
    tensor::DType compute = tensor::DType::f32;
    CpuLayout layout = CpuLayout::automatic;
    int threads = 1;
};

inline std::string to_string(const Setting& setting) {
    return std::string(name_of(setting.compute)) +
           (setting.layout == CpuLayout::automatic ? "_automatic_" : "_channels_last_") +
           std::to_string(setting.threads) + "_threads";
}

inline void PrintTo(const Setting& setting, std::ostream* stream) {
    *stream << to_string(setting);
}

/// Every precision of this machine in every layout with one and two threads.
inline std::vector<Setting> all_settings() {
    std::vector<Setting> settings;
    for (const tensor::DType compute : make_cpu_device({})->compute_dtypes()) {
        for (const CpuLayout layout : {CpuLayout::automatic, CpuLayout::channels_last}) {
            for (const int threads : {1, 2}) settings.push_back({compute, layout, threads});
        }
    }
    return settings;
}

/// Device memory full of NaNs, with a guard behind its end.
class Buffer {
public:
    Buffer(Device& device, std::size_t bytes)
        : bytes_(bytes), memory_(device.allocate(bytes + kGuard)) {
        std::memset(memory_->data(), 0xff, bytes + kGuard);
    }
    void* data() const { return memory_->data(); }
    bool guard_is_whole() const {
        const auto* guard = static_cast<const unsigned char*>(memory_->data()) + bytes_;
        return std::all_of(guard, guard + kGuard, [](unsigned char byte) { return byte == 0xff; });
    }

private:
    static constexpr std::size_t kGuard = 256;
    std::size_t bytes_;
    std::unique_ptr<Memory> memory_;
};

class KernelRunner {
public:
    KernelRunner(const Setting& setting, const naive::Problem& problem)
        : setting_(setting),
          problem_(problem),
          device_(make_cpu_device({setting.threads, setting.layout})),
          kernel_(device_->build(
              problem.operation,
              {setting.compute, problem.training ? Mode::training : Mode::inference, true})) {
        for (std::size_t i = 0; i < problem.inputs.size(); ++i) add_input(i);
        output_ = image(output_shape(problem.operation), output_dtype());
        for (const auto& gradient : problem.output_gradients) {
            tensors_.output_gradients.push_back(stored(gradient, setting.compute));
        }
        tensors_.output = output_;
        for (const auto& parameter : problem.parameters) {
            tensors_.parameters.push_back(plain(parameter));
            tensors_.parameter_gradients.push_back(plain(naive::Tensor(parameter.shape, kNan)));
        }
        tensors_.running_mean = plain(problem.running_mean);
        tensors_.running_variance = plain(problem.running_variance);
        loss_scale_ = static_cast<float>(problem.loss_scale);
        tensors_.loss_scale = &loss_scale_;
        const KernelMemory memory = kernel_->memory();
        tensors_.saved = bytes(memory.saved_bytes);
        tensors_.prepared = bytes(memory.prepared_bytes);
        tensors_.workspace = bytes(memory.workspace_bytes);
    }

    /// Runs all passes in order and reads everything back. Input gradients that are not wanted
    /// get no address.
    naive::Solution run(const std::vector<bool>& wanted_input_gradients = {}) {
        for (std::size_t i = 0; i < wanted_input_gradients.size(); ++i) {
            if (!wanted_input_gradients[i]) tensors_.input_gradients[i] = nullptr;
        }
        if (problem_.output_gradients.size() > kernel_->max_output_gradients()) {
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

    bool is_linear() const { return std::holds_alternative<ops::Linear>(problem_.operation); }
    bool is_loss() const {
        return std::holds_alternative<ops::SoftmaxCrossEntropy>(problem_.operation);
    }
    tensor::DType output_dtype() const {
        return is_linear() || is_loss() ? tensor::DType::f32 : setting_.compute;
    }

    void* bytes(std::size_t count) {
        buffers_.emplace_back(*device_, count);
        return buffers_.back().data();
    }
    void* image(const tensor::Shape& shape, tensor::DType dtype) {
        return bytes(storage_bytes(shape, dtype));
    }
    void* stored(const naive::Tensor& tensor, tensor::DType dtype) {
        void* to = image(tensor.shape, dtype);
        const std::vector<float> values(tensor.values.begin(), tensor.values.end());
        device_->store_channels_last(to, tensor.shape, dtype, values);
        return to;
    }
    template <typename Number>
    Number* plain(const naive::Tensor& tensor) {
        const std::vector<Number> values(tensor.values.begin(), tensor.values.end());
        void* to = bytes(values.size() * sizeof(Number));
        device_->upload(to, std::as_bytes(std::span(values)));
        return static_cast<Number*>(to);
    }
    float* plain(const naive::Tensor& tensor) { return plain<float>(tensor); }

    void add_input(std::size_t index) {
        const naive::Tensor& input = problem_.inputs[index];
        void* gradient = nullptr;
        if (std::holds_alternative<ops::InputNormalize>(problem_.operation)) {
            tensors_.inputs.push_back(plain<std::uint8_t>(input));
        } else if (is_loss() && index == 1) {
            tensors_.inputs.push_back(plain<std::int32_t>(input));
        } else {
            tensors_.inputs.push_back(
                stored(input, is_loss() ? tensor::DType::f32 : setting_.compute));
            gradient = image(input.shape, setting_.compute);
        }
        tensors_.input_gradients.push_back(gradient);
    }

    naive::Tensor load(const void* from, const tensor::Shape& shape, tensor::DType dtype) const {
        naive::Tensor tensor;
        if (from == nullptr) return tensor;
        std::vector<float> values(static_cast<std::size_t>(shape.elements()));
        device_->load_channels_last(values, shape, dtype, from);
        tensor.shape = shape;
        tensor.values.assign(values.begin(), values.end());
        return tensor;
    }

    naive::Tensor load_plain(const float* from, const tensor::Shape& shape) const {
        naive::Tensor tensor(shape);
        std::copy_n(from, tensor.values.size(), tensor.values.begin());
        return tensor;
    }

    naive::Solution read() const {
        naive::Solution solution;
        solution.output = load(output_, output_shape(problem_.operation), output_dtype());
        if (is_loss()) {
            solution.losses =
                load_plain(static_cast<float*>(tensors_.saved), {problem_.inputs[0].shape[0]});
        }
        for (std::size_t i = 0; i < problem_.inputs.size(); ++i) {
            solution.input_gradients.push_back(
                load(tensors_.input_gradients[i], problem_.inputs[i].shape, setting_.compute));
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

    Setting setting_;
    const naive::Problem& problem_;
    std::unique_ptr<Device> device_;
    std::unique_ptr<Kernel> kernel_;
    std::vector<Buffer> buffers_;
    KernelTensors tensors_;
    void* output_ = nullptr;
    float loss_scale_ = 1;
};

/// How far a result may be from the reference, relative to the reference's largest number.
struct Tolerance {
    double stored = 0;  // of values and gradients in the compute type
    double fp32 = 0;    // of parameter gradients, losses, softmax and running statistics
};

/// For operations that round each stored number once or twice.
inline Tolerance tolerance_of(const Setting& setting) {
    return setting.compute == tensor::DType::f32 ? Tolerance{1e-5, 1e-5} : Tolerance{8e-3, 1e-4};
}

inline void expect_close(const naive::Tensor& got, const naive::Tensor& want, double tolerance,
                         const std::string& what) {
    ASSERT_EQ(got.values.size(), want.values.size()) << what;
    double largest = 1e-30;
    for (const double value : want.values) largest = std::max(largest, std::abs(value));
    for (std::size_t i = 0; i < want.values.size(); ++i) {
        ASSERT_NEAR(got.values[i], want.values[i], tolerance * largest) << what << " at " << i;
    }
}

inline void expect_agreement(const Setting& setting, const naive::Problem& problem,
                             const Tolerance& tolerance) {
    SCOPED_TRACE(std::string(name_of(problem.operation)) + " of " +
                 to_string(problem.inputs[0].shape));
    const naive::Solution got = KernelRunner(setting, problem).run();
    const naive::Solution want = naive::solve(problem);
    const bool fp32 = std::holds_alternative<ops::Linear>(problem.operation) ||
                      std::holds_alternative<ops::SoftmaxCrossEntropy>(problem.operation);
    expect_close(got.output, want.output, fp32 ? tolerance.fp32 : tolerance.stored, "output");
    expect_close(got.losses, want.losses, tolerance.fp32, "losses");
    expect_close(got.running_mean, want.running_mean, tolerance.fp32, "running mean");
    expect_close(got.running_variance, want.running_variance, tolerance.fp32, "running variance");
    if (!problem.training) return;
    for (std::size_t i = 0; i < want.input_gradients.size(); ++i) {
        expect_close(got.input_gradients[i], want.input_gradients[i], tolerance.stored,
                     "input gradient " + std::to_string(i));
    }
    for (std::size_t i = 0; i < want.parameter_gradients.size(); ++i) {
        expect_close(got.parameter_gradients[i], want.parameter_gradients[i], tolerance.fp32,
                     "parameter gradient " + std::to_string(i));
    }
}

inline void expect_agreement(const Setting& setting, const naive::Problem& problem) {
    expect_agreement(setting, problem, tolerance_of(setting));
}

}  // namespace hpcai::device
