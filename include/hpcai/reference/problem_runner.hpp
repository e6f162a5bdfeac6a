// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <hpcai/device/device.hpp>
#include <hpcai/reference/load_values.hpp>
#include <hpcai/reference/naive_ops.hpp>

namespace hpcai::naive {

/// Runs one kernel of a device on a Problem, to compare its results with solve(). All memory is
/// filled with NaN first, to detect missing writes and reads of memory that was not written. Writes
/// past the end of a buffer are detected, too.
class ProblemRunner {
public:
    struct Options {
        device::KernelOptions kernel;  // mode and needs_input_gradient follow from the problem
        device::StepScalars step{};
        std::vector<bool> wanted_input_gradients{};  // [input]; past the end: true
    };

    /// Builds and binds the kernel. The device and the problem must outlive the object. Throws as
    /// the device does, and Error(internal) for more output gradients than the kernel can sum.
    ProblemRunner(device::Device& device, const Options& options, const Problem& problem);

    device::Kernel& kernel() { return *kernel_; }
    /// Resets the running statistics and runs all passes in order. Waits for the device.
    void run();
    /// Returns the results of the last run. Gradients that the kernel does not compute are empty
    /// tensors for inputs, and NaN for parameters.
    Solution read() const;
    /// Returns the bits of all results of the last run, as the device stores them.
    std::vector<std::byte> bits() const;
    bool wrote_past_end() const;

private:
    tensor::DType output_dtype() const;
    tensor::DType input_dtype(std::size_t index) const;
    std::size_t value_bytes(const Shape& shape, tensor::DType dtype, bool sums) const;
    void* allocate(std::size_t bytes);
    /// Returns memory with `tensor` in the device's layout; plain(): in canonical order.
    void* stored(const Tensor& tensor, tensor::DType dtype, bool sums = false);
    template <typename Number>
    Number* plain(const Tensor& tensor);
    void* plain(const Tensor& tensor, tensor::DType dtype);
    void add_input(std::size_t index, bool is_wanted);
    void add_parameters();
    void reset_statistics();
    const float* sums_of_output() const;
    Tensor load(const void* from, const Shape& shape, tensor::DType dtype) const;
    Tensor load_plain(const float* from, const Shape& shape) const;

    const Problem& problem_;
    device::Device& device_;
    tensor::DType compute_;
    std::unique_ptr<device::Kernel> kernel_;
    std::vector<device::Buffer> buffers_;
    device::KernelTensors tensors_;
};

}  // namespace hpcai::naive
