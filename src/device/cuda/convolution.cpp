// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <hpcai/base/error.hpp>

#include "kernels/cast.hpp"

#include "cudnn_choice.hpp"
#include "layout.hpp"

namespace hpcai::device::cuda {
namespace {

/// Converts between the fp32 master weights (K, R, S, C) and a copy of the filters for cuDNN. The
/// copy has the compute type, padding filters and channels, and blocks if reads_blocks().
class FilterLayout {
public:
    FilterLayout(const ops::Convolution& op, const KernelOptions& options)
        : is_blocked_(reads_blocks(op, options)) {
        const DType dtype = options.compute;
        const ConvolutionShape shape = convolution_shape(op, options);
        const auto channels = static_cast<int>(op.input[3]);
        const auto padded = static_cast<int>(stored_channels(op.input[3]));
        const auto side = static_cast<int>(op.kernel);
        rows_ = {dtype, op.filters * op.kernel * op.kernel, channels, padded};
        blocks_ = {dtype, op.filters, side, side, channels, padded};
        filled_ =
            static_cast<std::size_t>(is_blocked_ ? blocks_.elements() : rows_.padded_elements()) *
            size_of(dtype);
        bytes_ = bytes_of(Operand::filters, shape);
        uses_masters_ = dtype == DType::f32 && !is_padded() && shape.filters == op.filters;
    }

    /// Bytes of a copy; 0 if cuDNN reads the master weights directly.
    std::size_t copy_bytes() const { return uses_masters_ ? 0 : rounded_up(bytes_); }

    /// Whether a copy has the elements of the master weights in order, perhaps followed by zeros.
    bool is_plain_copy() const { return !uses_masters_ && !is_blocked_ && !is_padded(); }

    void update_copy(const float* weights, void* copy, const Context& context) const {
        if (uses_masters_) return;
        if (is_blocked_) {
            kernels::filters_to_blocks(blocks_, weights, copy, context.stream);
        } else {
            kernels::pad_rows(rows_, DType::f32, weights, copy, context.stream);
        }
        if (filled_ == bytes_) return;
        check(cudaMemsetAsync(static_cast<std::byte*>(copy) + filled_, 0, bytes_ - filled_,
                              context.stream),
              "padding filters");
    }

    void store_gradient(const void* from, float* gradient, const Context& context) const {
        if (uses_masters_) return;
        if (is_blocked_) {
            kernels::filters_from_blocks(blocks_, from, gradient, context.stream);
        } else {
            kernels::strip_rows(rows_, from, DType::f32, gradient, context.stream);
        }
    }

private:
    bool is_padded() const { return rows_.channels != rows_.padded_channels; }

    bool is_blocked_;
    kernels::PaddedRows rows_;
    kernels::BlockedImages blocks_;
    std::size_t filled_ = 0, bytes_ = 0;  // bytes of a copy, without and with padding filters
    bool uses_masters_ = true;
};

class ConvolutionKernel final : public OperationKernel<ops::Convolution, Context> {
public:
    ConvolutionKernel(const ops::Convolution& op, const KernelOptions& options,
                      const Context& context)
        : OperationKernel(op, options, context), layout_(op, options) {
        const ConvolutionShape shape = convolution_shape(op, options);
        if (reads_blocks(op, options)) {
            blocks_ = {.dtype = options.compute,
                       .images = op.input[0],
                       .height = static_cast<int>(op.input[1]),
                       .width = static_cast<int>(op.input[2]),
                       .channels = static_cast<int>(stored_channels(op.input[3])),
                       .padded_channels = static_cast<int>(stored_channels(op.input[3])),
                       .border = 1,
                       .adjacent = shape.is_column ? static_cast<int>(shape.kernel) : 1};
            image_bytes_ = rounded_up(bytes_of(Operand::image, shape));
        }
        ensure(!op.sums || shape.filters == op.filters,
               "channel sums of {} filters would include padding", op.filters);
        if (op.sums) summed_bytes_ = bytes_of(Operand::output, shape);
        forward_ = ChosenPlan(
            shape, op.sums ? ConvolutionPass::forward_with_statistics : ConvolutionPass::forward,
            context);
        if (!trains()) return;
        weight_gradient_ = ChosenPlan(shape, ConvolutionPass::weight_gradient, context);
        if (!options.needs_input_gradient) return;
        input_gradient_ = ChosenPlan(shape, ConvolutionPass::input_gradient, context);
    }

    KernelMemory memory() const override {
        KernelMemory needed;
        needed.prepared_bytes = layout_.copy_bytes();
        if (trains()) needed.saved_bytes = image_bytes_;
        needed.workspace_bytes =
            std::max({(trains() ? 0 : image_bytes_) + forward_.workspace_bytes(),
                      input_gradient_.workspace_bytes(),
                      gradient_bytes() + weight_gradient_.workspace_bytes()});
        return needed;
    }

    void bind(const KernelTensors& tensors) override {
        OperationKernel::bind(tensors);
        workspace_ = static_cast<std::byte*>(tensors.workspace);
        filters_ = layout_.copy_bytes() > 0 ? tensors.prepared : tensors.parameters[0];
        blocked_image_ = trains() ? tensors.saved : workspace_;
        void* image = image_bytes_ > 0 ? blocked_image_ : tensors.inputs[0];
        forward_operands_[Operand::image] = image;
        forward_operands_[Operand::filters] = filters_;
        forward_operands_[Operand::output] = tensors.output;
        if (summed_bytes_ > 0) {
            const Sums sums = sums_of(tensors.output, summed_bytes_, op_.filters);
            forward_operands_[Operand::sum] = sums.sum;
            forward_operands_[Operand::square_sum] = sums.squares;
        }
        if (!trains()) return;
        weight_operands_[Operand::image] = image;
        weight_operands_[Operand::output] = output_gradient();
        weight_operands_[Operand::gradient] =
            gradient_bytes() > 0 ? static_cast<void*>(workspace_) : tensors.parameter_gradients[0];
        if (!options_.needs_input_gradient) return;
        input_operands_[Operand::output] = output_gradient();
        input_operands_[Operand::filters] = filters_;
        input_operands_[Operand::image] = tensors.input_gradients[0];
    }

    ops::BackwardReads backward_reads() const override { return {.inputs = image_bytes_ == 0}; }

    std::vector<WorkingCopy> working_copies() const override {
        if (!layout_.is_plain_copy()) return {};
        return {{0, filters_}};
    }

private:
    void prepare() override { layout_.update_copy(tensors_.parameters[0], filters_, context_); }
    void forward() override {
        if (image_bytes_ > 0) {
            kernels::to_blocks(blocks_, tensors_.inputs[0], blocked_image_, context_.stream);
        }
        forward_.run(forward_operands_, workspace_ + (trains() ? 0 : image_bytes_));
    }
    void weight_gradient() override {
        weight_gradient_.run(weight_operands_, workspace_ + gradient_bytes());
        layout_.store_gradient(workspace_, tensors_.parameter_gradients[0], context_);
    }
    void input_gradient() override { input_gradient_.run(input_operands_, workspace_); }

    /// Bytes of the filters' gradient as cuDNN writes it, at the start of the workspace.
    std::size_t gradient_bytes() const { return trains() ? layout_.copy_bytes() : 0; }

    std::size_t summed_bytes_ = 0;  // of the output's elements if sums follow them, else 0
    FilterLayout layout_;
    kernels::BlockedImages blocks_;
    std::size_t image_bytes_ = 0;  // of the image in blocks; 0 if cuDNN reads the input
    void* blocked_image_ = nullptr;
    ChosenPlan forward_, weight_gradient_, input_gradient_;
    Operands forward_operands_, weight_operands_, input_operands_;
    void* filters_ = nullptr;
    std::byte* workspace_ = nullptr;
};

}  // namespace

HPCAI_BUILD_KERNEL(Convolution)

}  // namespace hpcai::device::cuda
