// SPDX-License-Identifier: Apache-2.0
#include "kernels/bias.hpp"

#include "layout.hpp"

namespace hpcai::device::cuda {
namespace {

class BiasKernel final : public Kernel {
public:
    BiasKernel(const ops::Bias& op, const KernelOptions& options, const Context& context)
        : op_(op),
          context_(context),
          mode_(options.mode),
          shape_{options.compute, op.input[0] * op.input[1] * op.input[2], op.input[3],
                 stored_channels(op.input[3])} {}

    KernelMemory memory() const override {
        if (mode_ == Mode::inference) return {};
        return {0, 0, kernels::bias_workspace_bytes(shape_)};
    }
    std::size_t max_output_gradients() const override { return 2; }
    bool backward_reads_output() const override { return op_.relu; }
    std::vector<ops::Pass> passes() const override {
        if (mode_ == Mode::inference) return {ops::Pass::forward};
        return {ops::Pass::forward, ops::Pass::input_gradient};
    }
    void bind(const KernelTensors& tensors) override { tensors_ = tensors; }

    void run(ops::Pass pass) override {
        if (pass == ops::Pass::forward) {
            kernels::bias(shape_,
                          {tensors_.inputs[0], tensors_.parameters[0], tensors_.output, op_.relu},
                          context_.stream);
            return;
        }
        kernels::bias_gradient(shape_,
                               {.y = op_.relu ? tensors_.output : nullptr,
                                .dy0 = tensors_.output_gradients[0],
                                .dy1 = second_of(tensors_.output_gradients),
                                .dx = tensors_.input_gradients[0],
                                .bias_gradient = tensors_.parameter_gradients[0],
                                .workspace = tensors_.workspace},
                               context_.stream);
    }

private:
    ops::Bias op_;
    const Context& context_;
    Mode mode_;
    kernels::BiasShape shape_;
    KernelTensors tensors_;
};

}  // namespace

std::unique_ptr<Kernel> build_bias(const ops::Bias& op, const KernelOptions& options,
                                   const Context& context) {
    return std::make_unique<BiasKernel>(op, options, context);
}

}  // namespace hpcai::device::cuda
