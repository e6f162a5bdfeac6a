// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <hpcai/base/rounding.hpp>
#include <hpcai/device/step_scalars.hpp>
#include <hpcai/ops/pass.hpp>

namespace hpcai::device {

/// Memory a planned kernel asks for, in bytes.
struct KernelMemory {
    std::size_t saved_bytes = 0;      // written forward, read backward
    std::size_t prepared_bytes = 0;   // working copies of parameters, kept from step to step
    std::size_t workspace_bytes = 0;  // scratch of any one pass
};

/// Where the sums that a value carries lie (ops::carries_sums), behind its elements' bytes.
constexpr std::size_t sums_offset(std::size_t element_bytes) {
    return align_up(element_bytes, 256);
}

/// Addresses of everything a kernel reads and writes, laid out as its Device lays tensors out. A
/// null pointer among `input_gradients` means that this gradient is not needed.
struct KernelTensors {
    std::vector<void*> inputs;
    void* output = nullptr;
    std::vector<void*> output_gradients;      // the output's gradient is the sum of these
    std::vector<void*> input_gradients;       // overwritten
    std::vector<float*> parameters;           // fp32 masters, canonical layout
    std::vector<float*> parameter_gradients;  // overwritten, canonical layout
    float* running_mean = nullptr;            // (C)
    float* running_variance = nullptr;        // (C)
    float* inner_running_mean = nullptr;      // (C), DualNorm only, as the next
    float* inner_running_variance = nullptr;
    void* saved = nullptr;
    void* prepared = nullptr;
    void* workspace = nullptr;
    const float* loss_scale = nullptr;  // loss gradients are multiplied by this one number
    const StepScalars* step = nullptr;  // whose random numbers rounding takes
};

/// A parameter as a kernel keeps it in the compute type: the master's elements in their order,
/// rounded to nearest even.
struct WorkingCopy {
    std::size_t parameter = 0;  // index in KernelTensors::parameters
    void* place = nullptr;      // 64-byte aligned
};

/// One operation, planned for one device, shape and precision, and bound to its memory. Running
/// it allocates nothing but messages to other ranks. Calls return when the work is enqueued on the
/// device's stream; on a CPU, when it is done.
class Kernel {
public:
    virtual ~Kernel() = default;

    virtual KernelMemory memory() const { return {}; }
    /// How many output gradients it can sum while it reads them.
    virtual std::size_t max_output_gradients() const { return 1; }
    virtual bool backward_reads_inputs() const { return false; }
    virtual bool backward_reads_output() const { return false; }
    /// The passes in which it does work, in the order of a step.
    virtual std::vector<ops::Pass> passes() const = 0;

    /// Called once, before the first run; the addresses stay valid for the kernel's life.
    virtual void bind(const KernelTensors& tensors) = 0;
    /// After bind(): what prepare has to renew when parameters change, where that is copies and no
    /// more. Who writes them with the parameters runs prepare no more than once.
    virtual std::vector<WorkingCopy> working_copies() const { return {}; }
    /// Throws Error(internal) when the device library reports a failure.
    virtual void run(ops::Pass pass) = 0;
};

}  // namespace hpcai::device
