// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <hpcai/base/error.hpp>

#include "kernels/cast.hpp"

#include "cudnn_choice.hpp"
#include "layout.hpp"

namespace hpcai::device::cuda {
namespace {

/// Converts between the fp32 master weights (K, R, R, C) and the filters for cuDNN. The latter have
/// the compute type, padding filters and channels and, for pairs of pixels, zeros around the taps.
class FilterLayout {
public:
    FilterLayout() = default;
    FilterLayout(const ops::Convolution& op, const ConvolutionShape& shape)
        : rows_(rows_of(op, shape)),
          bytes_(bytes_of(Operand::filters, shape)),
          uses_masters_(shape.dtype == DType::f32 && !is_padded() && shape.filters == op.filters) {}

    /// Bytes of a copy; 0 if cuDNN reads the master weights directly.
    std::size_t copy_bytes() const { return uses_masters_ ? 0 : rounded_up(bytes_); }

    /// Whether a copy has the elements of the master weights in order, perhaps followed by zeros.
    bool is_plain_copy() const { return !uses_masters_ && !is_padded(); }

    /// Enqueues the conversion of the master weights to the filters for cuDNN.
    void update_copy(const float* weights, void* copy, const Context& context) const {
        if (uses_masters_) return;
        const std::size_t filled =
            static_cast<std::size_t>(rows_.padded_elements()) * size_of(rows_.dtype);
        if (is_padded()) {
            kernels::pad_channels(rows_, weights, copy, context.stream);
        } else {
            kernels::cast_from_f32(weights, rows_.dtype, copy, elements(), context.stream);
        }
        if (filled == bytes_) return;
        check(cudaMemsetAsync(static_cast<std::byte*>(copy) + filled, 0, bytes_ - filled,
                              context.stream),
              "padding filters");
    }

    void store_gradient(const void* copy, float* gradient, const Context& context) const {
        if (uses_masters_) return;
        if (is_padded()) {
            kernels::strip_channels(rows_, copy, gradient, context.stream);
        } else {
            kernels::cast_to_f32(rows_.dtype, copy, gradient, elements(), context.stream);
        }
    }

private:
    static kernels::PaddedRows rows_of(const ops::Convolution& op, const ConvolutionShape& shape) {
        kernels::PaddedRows rows{.dtype = shape.dtype,
                                 .rows = op.filters * op.kernel,
                                 .columns = static_cast<int>(op.kernel),
                                 .padded_columns = static_cast<int>(shape.kernel_width()),
                                 .channels = static_cast<int>(op.input[3]),
                                 .padded_channels = static_cast<int>(shape.channels)};
        if (!shape.pairs) return rows;
        rows.padded_columns *= 2;
        rows.padded_channels /= 2;
        rows.first_column = static_cast<int>(2 * shape.padding_width() - shape.padding);
        return rows;
    }
    bool is_padded() const { return elements() != rows_.padded_elements(); }
    std::int64_t elements() const { return rows_.rows * rows_.columns * rows_.channels; }

    kernels::PaddedRows rows_;
    std::size_t bytes_ = 0;
    bool uses_masters_ = true;
};

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
