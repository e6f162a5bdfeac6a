// SPDX-License-Identifier: Apache-2.0
#include "kernels/bias.hpp"

#include "layout.hpp"

namespace hpcai::device::cuda {
namespace {

class BiasKernel final : public OperationKernel<ops::Bias, Context> {
public:
    using OperationKernel::OperationKernel;

    KernelMemory memory() const override {
        if (!trains()) return {};
        return {.workspace_bytes = kernels::bias_workspace_bytes(shape_)};
    }

private:
    void forward() override {
        kernels::bias(shape_,
                      {tensors_.inputs[0], tensors_.parameters[0], tensors_.output, op_.relu},
                      context_.stream);
    }
    void input_gradient() override {
        kernels::bias_gradient(shape_,
                               {.y = op_.relu ? tensors_.output : nullptr,
                                .dy0 = output_gradient(),
                                .dy1 = second_output_gradient(),
                                .dx = tensors_.input_gradients[0],
                                .bias_gradient = tensors_.parameter_gradients[0],
                                .workspace = tensors_.workspace},
                               context_.stream);
    }

    const kernels::BiasShape shape_{options_.compute, op_.input[0] * op_.input[1] * op_.input[2],
                                    op_.input[3], stored_channels(op_.input[3])};
};

}  // namespace

KernelPtr build(const ops::Bias& op, const KernelOptions& options, const Context& context) {
    return std::make_unique<BiasKernel>(op, options, context);
}

}  // namespace hpcai::device::cuda
