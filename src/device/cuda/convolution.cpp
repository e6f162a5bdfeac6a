// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <hpcai/base/error.hpp>

#include "cudnn_choice.hpp"
#include "filter_layout.hpp"

namespace hpcai::device::cuda {
namespace {

class ConvolutionKernel final : public OperationKernel<ops::Convolution, Context> {
public:
    ConvolutionKernel(const ops::Convolution& op, const KernelOptions& options,
                      const Context& context)
        : OperationKernel(op, options, context) {
        const ConvolutionShape shape = convolution_shape(op, options);
        layout_ = FilterLayout(op, shape);
        ensure(!op.sums || shape.filters == op.filters, "no sums for {} filters", op.filters);
        if (op.sums) summed_bytes_ = bytes_of(Operand::output, shape);
        forward_ = ChosenPlan(
            shape, op.sums ? ConvolutionPass::forward_with_statistics : ConvolutionPass::forward,
            context);
        if (!trains()) return;
        const ConvolutionShape weight_shape = weight_gradient_shape(op, options);
        gradient_layout_ = FilterLayout(op, weight_shape);
        weight_gradient_ = ChosenPlan(weight_shape, ConvolutionPass::weight_gradient, context);
        if (!options.needs_input_gradient) return;
        input_gradient_ = ChosenPlan(shape, ConvolutionPass::input_gradient, context);
    }

    KernelMemory memory() const override {
        KernelMemory bytes;
        bytes.prepared_bytes = layout_.copy_bytes();
        bytes.workspace_bytes =
            std::max({forward_.workspace_bytes(), input_gradient_.workspace_bytes(),
                      gradient_bytes() + weight_gradient_.workspace_bytes()});
        return bytes;
    }

    void bind(const KernelTensors& tensors) override {
        OperationKernel::bind(tensors);
        workspace_ = static_cast<std::byte*>(tensors.workspace);
        filters_ = layout_.copy_bytes() > 0 ? tensors.prepared : tensors.parameters[0];
        forward_operands_[Operand::image] = tensors.inputs[0];
        forward_operands_[Operand::filters] = filters_;
        forward_operands_[Operand::output] = tensors.output;
        if (summed_bytes_ > 0) {
            const Sums sums = sums_of(tensors.output, summed_bytes_, op_.filters);
            forward_operands_[Operand::sum] = sums.sum;
            forward_operands_[Operand::square_sum] = sums.squares;
        }
        if (!trains()) return;
        weight_operands_[Operand::image] = tensors.inputs[0];
        weight_operands_[Operand::output] = output_gradient();
        weight_operands_[Operand::gradient] =
            gradient_bytes() > 0 ? static_cast<void*>(workspace_) : tensors.parameter_gradients[0];
        if (!options_.needs_input_gradient) return;
        input_operands_[Operand::output] = output_gradient();
        input_operands_[Operand::filters] = filters_;
        input_operands_[Operand::image] = tensors.input_gradients[0];
    }

    std::vector<WorkingCopy> working_copies() const override {
        if (!layout_.is_plain_copy()) return {};
        return {{0, filters_}};
    }

private:
    void prepare() override { layout_.update_copy(tensors_.parameters[0], filters_, context_); }
    void forward() override { forward_.run(forward_operands_, workspace_); }
    void weight_gradient() override {
        weight_gradient_.run(weight_operands_, workspace_ + gradient_bytes());
        gradient_layout_.store_gradient(workspace_, tensors_.parameter_gradients[0], context_);
    }
    void input_gradient() override { input_gradient_.run(input_operands_, workspace_); }

    /// Bytes of the filters' gradient as cuDNN writes it, at the start of the workspace.
    std::size_t gradient_bytes() const { return trains() ? gradient_layout_.copy_bytes() : 0; }

    std::size_t summed_bytes_ = 0;  // of the output if it carries sums, else 0
    FilterLayout layout_, gradient_layout_;
    ChosenPlan forward_, weight_gradient_, input_gradient_;
    Operands forward_operands_, weight_operands_, input_operands_;
    void* filters_ = nullptr;
    std::byte* workspace_ = nullptr;
};

}  // namespace

HPCAI_BUILD_KERNEL(Convolution)

}  // namespace hpcai::device::cuda
