// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/device/device.hpp>

/// The base class of the kernels of all engines.
namespace hpcai::device {

/// Returns the passes that a kernel of the operation implements, in the order of a step.
std::vector<ops::Pass> passes_of(const ops::Operation& operation, const KernelOptions& options);

/// Rethrows a caught Error; throws any other `error` as Error(internal) naming operation and pass.
[[noreturn]] void rethrow_naming(const ops::Operation&, ops::Pass, const std::exception& error);

/// An engine's kernel for an operation; `Context` has the resources of the engine. The kernel
/// overrides the pass functions that passes_of() lists.
template <typename Operation, typename Context>
class OperationKernel : public Kernel {
public:
    /// `context` must outlive the kernel.
    OperationKernel(const Operation& op, const KernelOptions& options, const Context& context)
        : op_(op), options_(options), context_(context) {}

    ops::BackwardReads backward_reads() const override { return ops::backward_reads(op_); }
    std::vector<ops::Pass> passes() const override { return passes_of(op_, options_); }
    void bind(const KernelTensors& tensors) override { tensors_ = tensors; }
    void run(ops::Pass pass) override {
        try {
            switch (pass) {
                case ops::Pass::prepare:
                    return prepare();
                case ops::Pass::forward:
                    return forward();
                case ops::Pass::weight_gradient:
                    return weight_gradient();
                case ops::Pass::input_gradient:
                    return input_gradient();
            }
        } catch (const std::exception& error) {
            rethrow_naming(op_, pass, error);
        }
    }

protected:
    virtual void prepare() {}
    virtual void forward() = 0;
    virtual void weight_gradient() {}
    virtual void input_gradient() {}

    bool trains() const { return options_.mode == Mode::training; }

    template <typename Number = float>
    const Number* input(std::size_t index) const {
        return static_cast<const Number*>(tensors_.inputs[index]);
    }
    float* output() const { return static_cast<float*>(tensors_.output); }
    /// The gradient of the output is the sum of this and added_output_gradient().
    void* output_gradient() const { return tensors_.output_gradients[0]; }
    /// Null: nothing is added.
    void* added_output_gradient() const {
        return tensors_.output_gradients.size() > 1 ? tensors_.output_gradients[1] : nullptr;
    }

    const Operation op_;
    const KernelOptions options_;
    const Context& context_;
    KernelTensors tensors_;
};

// C++ cannot declare a function for each type of ops::Operation, so a macro lists the types.
// clang-format off
#define HPCAI_BUILD(Op) KernelPtr build(const ops::Op&, const KernelOptions&, const Context&);
#define HPCAI_BUILD_ALL \
    HPCAI_BUILD(InputNormalize) HPCAI_BUILD(Convolution) HPCAI_BUILD(BatchNorm)               \
    HPCAI_BUILD(DualNorm) HPCAI_BUILD(PointwiseNorm)                                          \
    HPCAI_BUILD(GroupNorm) HPCAI_BUILD(Bias) HPCAI_BUILD(UpsampleAdd)                         \
    HPCAI_BUILD(Relu) HPCAI_BUILD(Add) HPCAI_BUILD(MaxPool) HPCAI_BUILD(NormPool)             \
    HPCAI_BUILD(GlobalAveragePool) HPCAI_BUILD(Linear) HPCAI_BUILD(SoftmaxCrossEntropy)       \
    HPCAI_BUILD(AnchorTargets) HPCAI_BUILD(RpnLoss)                                           \
    HPCAI_BUILD(Proposals) HPCAI_BUILD(RoiTargets) HPCAI_BUILD(RoiAlign) HPCAI_BUILD(RoiLoss) \
    HPCAI_BUILD(Detections) HPCAI_BUILD(CellCrossEntropy) HPCAI_BUILD(AllGather)              \
    HPCAI_BUILD(ReduceScatter)
// clang-format on

/// Each function builds a kernel. Throws Error(internal) for an unsupported operation.
namespace cpu {
struct Context;
HPCAI_BUILD_ALL
}  // namespace cpu

namespace cuda {
struct Context;
HPCAI_BUILD_ALL
}  // namespace cuda

#undef HPCAI_BUILD_ALL
#undef HPCAI_BUILD

/// Defines the build() for ops::Op in the current namespace; it makes an Op##Kernel.
#define HPCAI_BUILD_KERNEL(Op)                                                                 \
    KernelPtr build(const ops::Op& op, const KernelOptions& options, const Context& context) { \
        return std::make_unique<Op##Kernel>(op, options, context);                             \
    }

/// Builds a kernel with the overload of build() for the type of `operation` and the engine.
KernelPtr build_kernel(const ops::Operation& operation, const KernelOptions& options,
                       const auto& context) {
    return std::visit([&](const auto& op) { return build(op, options, context); }, operation);
}

}  // namespace hpcai::device
