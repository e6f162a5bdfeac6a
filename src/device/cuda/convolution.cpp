// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <hpcai/base/error.hpp>

#include "cudnn_choice.hpp"
#include "filter_layout.hpp"

namespace hpcai::device::cuda {
namespace {

class ConvolutionKernel final : public Kernel {
public:
    ConvolutionKernel(const ops::Convolution& op, const KernelOptions& options,
                      const Context& context)
        : context_(context), options_(options), filters_count_(op.filters) {
        const ConvolutionShape shape = convolution_shape(op, options);
        layout_ = FilterLayout(op, shape);
        ensure(!op.sums || shape.filters == op.filters, "sums of {} filters", op.filters);
        if (op.sums) summed_bytes_ = bytes_of(Operand::output, shape);
        forward_ = ChosenPlan(
            shape, op.sums ? ConvolutionPass::forward_with_statistics : ConvolutionPass::forward,
            context);
        if (options.mode != Mode::training) return;
        weight_gradient_ = ChosenPlan(shape, ConvolutionPass::weight_gradient, context);
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

    bool backward_reads_inputs() const override { return true; }

    std::vector<ops::Pass> passes() const override {
        std::vector<ops::Pass> passes{ops::Pass::prepare, ops::Pass::forward};
        if (options_.mode == Mode::training) {
            passes.push_back(ops::Pass::weight_gradient);
            if (options_.needs_input_gradient) passes.push_back(ops::Pass::input_gradient);
        }
        return passes;
    }

    void bind(const KernelTensors& tensors) override {
        masters_ = tensors.parameters[0];
        workspace_ = static_cast<std::byte*>(tensors.workspace);
        filters_ = layout_.copy_bytes() > 0 ? tensors.prepared : masters_;
        forward_operands_[Operand::image] = tensors.inputs[0];
        forward_operands_[Operand::filters] = filters_;
        forward_operands_[Operand::output] = tensors.output;
        if (summed_bytes_ > 0) {
            const Sums sums = sums_of(tensors.output, summed_bytes_, filters_count_);
            forward_operands_[Operand::sum] = sums.sum;
            forward_operands_[Operand::square_sum] = sums.squares;
        }
        if (options_.mode != Mode::training) return;
        gradient_ = tensors.parameter_gradients[0];
        weight_operands_[Operand::image] = tensors.inputs[0];
        weight_operands_[Operand::output] = tensors.output_gradients[0];
        weight_operands_[Operand::gradient] =
            gradient_bytes() > 0 ? static_cast<void*>(workspace_) : gradient_;
        if (!options_.needs_input_gradient) return;
        input_operands_[Operand::output] = tensors.output_gradients[0];
        input_operands_[Operand::filters] = filters_;
        input_operands_[Operand::image] = tensors.input_gradients[0];
    }

    std::vector<WorkingCopy> working_copies() const override {
        if (!layout_.is_plain_copy()) return {};
        return {{0, filters_}};
    }

    void run(ops::Pass pass) override {
        switch (pass) {
            case ops::Pass::prepare:
                layout_.refresh(masters_, filters_, context_);
                break;
            case ops::Pass::forward:
                forward_.run(forward_operands_, workspace_);
                break;
            case ops::Pass::weight_gradient:
                weight_gradient_.run(weight_operands_, workspace_ + gradient_bytes());
                layout_.return_gradient(workspace_, gradient_, context_);
                break;
            case ops::Pass::input_gradient:
                input_gradient_.run(input_operands_, workspace_);
                break;
        }
    }

private:
    /// The filters' gradient as cuDNN writes it lies at the start of the workspace.
    std::size_t gradient_bytes() const {
        return options_.mode == Mode::training ? layout_.copy_bytes() : 0;
    }

    const Context& context_;
    KernelOptions options_;
    std::int64_t filters_count_;
    std::size_t summed_bytes_ = 0;  // of an output that carries sums
    FilterLayout layout_;
    ChosenPlan forward_, weight_gradient_, input_gradient_;
    Operands forward_operands_, weight_operands_, input_operands_;
    float* masters_ = nullptr;
    float* gradient_ = nullptr;
    void* filters_ = nullptr;
    std::byte* workspace_ = nullptr;
};

}  // namespace

std::unique_ptr<Kernel> build_convolution(const ops::Convolution& op, const KernelOptions& options,
                                          const Context& context) {
    return std::make_unique<ConvolutionKernel>(op, options, context);
}

}  // namespace hpcai::device::cuda
