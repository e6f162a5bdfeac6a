// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <hpcai/base/rounding.hpp>
#include <hpcai/ops/pass.hpp>
#include <hpcai/ops/step_scalars.hpp>

namespace hpcai::device {

using ops::StepScalars;

/// Sizes of the memory that a planned kernel needs.
struct KernelMemory {
    std::size_t saved_bytes = 0;      // written forward, read backward
    std::size_t prepared_bytes = 0;   // working copies of parameters, kept between steps
    std::size_t workspace_bytes = 0;  // scratch of one pass
};

/// Returns the offset in bytes of the channel sums after the elements (ops::outputs_channel_sums).
constexpr std::size_t sums_offset(std::size_t element_bytes) {
    return align_up(element_bytes, 256);
}

/// Addresses of all tensors that a kernel reads and writes, in the layout of its Device. A null
/// pointer in `input_gradients` means that the gradient is not needed.
struct KernelTensors {
    std::vector<void*> inputs;
    void* output = nullptr;
    std::vector<void*> output_gradients;      // the output's gradient is the sum of these
    std::vector<void*> input_gradients;       // overwritten
    std::vector<float*> parameters;           // fp32 masters, canonical layout
    std::vector<float*> parameter_gradients;  // overwritten, canonical layout
    float* running_mean = nullptr;            // (C)
    float* running_variance = nullptr;        // (C)
    float* inner_running_mean = nullptr;      // (C), DualNorm only, like the next field
    float* inner_running_variance = nullptr;
    void* saved = nullptr;
    void* prepared = nullptr;
    void* workspace = nullptr;
    const float* loss_scale = nullptr;     // scalar factor of loss gradients
    const StepScalars* scalars = nullptr;  // select the random numbers of rounding
};

/// A kernel's copy of a parameter in the compute type: the elements of the master in order, rounded
/// to nearest even.
struct WorkingCopy {
    std::size_t parameter = 0;  // index in KernelTensors::parameters
    void* address = nullptr;    // 64-byte aligned
};

/// One operation, planned for one device, shape and precision, and bound to its memory. Running it
/// allocates no memory except for messages to other ranks. Calls return when the work is enqueued
/// on the stream of the device; on a CPU, when it is complete.
class Kernel {
public:
    virtual ~Kernel() = default;

    virtual KernelMemory memory() const { return {}; }
    /// The number of output gradients that the kernel can sum while it reads them.
    virtual std::size_t max_output_gradients() const { return 1; }
    virtual bool backward_reads_inputs() const { return false; }
    virtual bool backward_reads_output() const { return false; }
    /// The passes of the kernel, in the order of a step.
    virtual std::vector<ops::Pass> passes() const = 0;

    /// Must be called once before the first run; the addresses must outlive the kernel.
    virtual void bind(const KernelTensors& tensors) = 0;
    /// The working copies that the prepare pass updates; none if the pass also does other work. A
    /// caller that updates them with the parameters needs the pass only once. Requires bind().
    virtual std::vector<WorkingCopy> working_copies() const { return {}; }
    /// Throws Error(internal) when the device library reports a failure.
    virtual void run(ops::Pass pass) = 0;
};
using KernelPtr = std::unique_ptr<Kernel>;

}  // namespace hpcai::device
