// SPDX-License-Identifier: Apache-2.0
#include "kernels/upsample_add.hpp"

#include "layout.hpp"

namespace hpcai::device::cuda {
namespace {

class UpsampleAddKernel final : public Kernel {
public:
    UpsampleAddKernel(const ops::UpsampleAdd& op, const KernelOptions& options,
                      const Context& context)
        : context_(context),
          mode_(options.mode),
          shape_{.dtype = options.compute,
                 .images = op.input[0],
                 .height = static_cast<int>(op.input[1]),
                 .width = static_cast<int>(op.input[2]),
                 .coarse_height = static_cast<int>(op.coarse[1]),
                 .coarse_width = static_cast<int>(op.coarse[2]),
                 .channels = static_cast<int>(stored_channels(op.input[3]))} {}

    std::size_t max_output_gradients() const override { return 2; }
    std::vector<ops::Pass> passes() const override {
        if (mode_ == Mode::inference) return {ops::Pass::forward};
        return {ops::Pass::forward, ops::Pass::input_gradient};
    }
    void bind(const KernelTensors& tensors) override { tensors_ = tensors; }

    void run(ops::Pass pass) override {
        if (pass == ops::Pass::forward) {
            kernels::upsample_add(shape_, tensors_.inputs[0], tensors_.inputs[1], tensors_.output,
                                  context_.stream);
            return;
        }
        kernels::upsample_add_gradient(shape_,
                                       {.dy0 = tensors_.output_gradients[0],
                                        .dy1 = second_of(tensors_.output_gradients),
                                        .fine_gradient = tensors_.input_gradients[0],
                                        .coarse_gradient = tensors_.input_gradients[1]},
                                       context_.stream);
    }

private:
    const Context& context_;
    Mode mode_;
    kernels::UpsampleShape shape_;
    KernelTensors tensors_;
};

}  // namespace

std::unique_ptr<Kernel> build_upsample_add(const ops::UpsampleAdd& op, const KernelOptions& options,
                                           const Context& context) {
    return std::make_unique<UpsampleAddKernel>(op, options, context);
}

}  // namespace hpcai::device::cuda
