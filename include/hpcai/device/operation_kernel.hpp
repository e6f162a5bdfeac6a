// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <variant>
#include <vector>

#include <hpcai/device/device.hpp>
#include <hpcai/ops/backward_reads.hpp>

/// What the kernels of an operation have in common in all engines.
namespace hpcai::device {

/// The passes in which a kernel of the operation does work, in the order of a step.
std::vector<ops::Pass> passes_of(const ops::Operation& operation, const KernelOptions& options);

/// How many output gradients a kernel of the operation can sum while it reads them, where its
/// engine says nothing else.
std::size_t max_output_gradients(const ops::Operation& operation);

/// A kernel of an engine for an operation. It defines those of the following
/// passes that passes_of() has.
template <typename Operation, typename Context>
class OperationKernel : public Kernel {
public:
    /// `context` outlives the kernel.
    OperationKernel(const Operation& op, const KernelOptions& options, const Context& context)
        : op_(op), options_(options), context_(context) {}

    std::size_t max_output_gradients() const override { return device::max_output_gradients(op_); }
    bool backward_reads_inputs() const override { return ops::backward_reads(op_).inputs; }
    bool backward_reads_output() const override { return ops::backward_reads(op_).output; }
    std::vector<ops::Pass> passes() const override { return passes_of(op_, options_); }
    void bind(const KernelTensors& tensors) override { tensors_ = tensors; }
    void run(ops::Pass pass) override {
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
    void* output_gradient() const { return tensors_.output_gradients[0]; }
    /// Null where there is one output gradient only.
    void* second_gradient() const {
        return tensors_.output_gradients.size() > 1 ? tensors_.output_gradients[1] : nullptr;
    }

    const Operation op_;
    const KernelOptions options_;
    const Context& context_;
    KernelTensors tensors_;
};

/// Plans a kernel by the engine's `build(op, options, context)` for the type of `operation`.
template <typename Context>
std::unique_ptr<Kernel> build_kernel(const ops::Operation& operation, const KernelOptions& options,
                                     const Context& context) {
    return std::visit([&](const auto& op) { return build(op, options, context); }, operation);
}

}  // namespace hpcai::device
