// SPDX-License-Identifier: Apache-2.0
#include "kernels/upsample_add.hpp"

#include "layout.hpp"

namespace hpcai::device::cuda {
namespace {

class UpsampleAddKernel final : public OperationKernel<ops::UpsampleAdd, Context> {
public:
    using OperationKernel::OperationKernel;

private:
    void forward() override {
        kernels::upsample_add(shape_, tensors_.inputs[0], tensors_.inputs[1], tensors_.output,
                              context_.stream);
    }
    void input_gradient() override {
        kernels::upsample_add_gradient(shape_,
                                       {.dy0 = output_gradient(),
                                        .dy1 = second_output_gradient(),
                                        .fine_gradient = tensors_.input_gradients[0],
                                        .coarse_gradient = tensors_.input_gradients[1]},
                                       context_.stream);
    }

    const kernels::UpsampleShape shape_{
        .dtype = options_.compute,
        .images = op_.input[0],
        .height = static_cast<int>(op_.input[1]),
        .width = static_cast<int>(op_.input[2]),
        .coarse_height = static_cast<int>(op_.coarse[1]),
        .coarse_width = static_cast<int>(op_.coarse[2]),
        .channels = static_cast<int>(stored_channels(op_.input[3]))};
};

}  // namespace

KernelPtr build(const ops::UpsampleAdd& op, const KernelOptions& options, const Context& context) {
    return std::make_unique<UpsampleAddKernel>(op, options, context);
}

}  // namespace hpcai::device::cuda
