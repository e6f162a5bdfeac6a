// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cast.hpp"

#include "cudnn_choice.hpp"
#include "layout.hpp"
#include "whole_batch_norm.hpp"

namespace hpcai::device::cuda {
namespace {

/// Converts between the fp32 master weights (K, R, R, C) and the filters for cuDNN. The latter have
/// the compute type and padding filters and channels, or are in blocks (see reads_blocks()).
class FilterLayout {
public:
    FilterLayout(const ops::Convolution& op, const KernelOptions& options)
        : dtype_(options.compute),
          elements_(op.filters * op.kernel * op.kernel * op.input[3]),
          is_blocked_(reads_blocks(op, options)) {
        const ConvolutionShape shape = convolution_shape(op, options);
        const auto channels = static_cast<int>(op.input[3]);
        const auto padded = static_cast<int>(stored_channels(op.input[3]));
        const auto side = static_cast<int>(op.kernel);
        rows_ = {dtype_, op.filters * op.kernel * op.kernel, channels, padded};
        blocks_ = {dtype_, op.filters, side, side, channels, padded};
        filled_ =
            static_cast<std::size_t>(is_blocked_ ? blocks_.elements() : rows_.padded_elements()) *
            size_of(dtype_);
        bytes_ = bytes_of(Operand::filters, shape);
        uses_masters_ = dtype_ == DType::f32 && !is_padded() && shape.filters == op.filters;
    }

    /// Bytes of a copy; 0 if cuDNN reads the master weights directly.
    std::size_t copy_bytes() const { return uses_masters_ ? 0 : rounded_up(bytes_); }

    /// Whether a copy has the elements of the master weights in order, perhaps followed by zeros.
    bool is_plain_copy() const { return !uses_masters_ && !is_blocked_ && !is_padded(); }

    /// Enqueues the conversion of the master weights to the filters for cuDNN.
    void update_copy(const float* weights, void* copy, const Context& context) const {
        if (uses_masters_) return;
        if (is_blocked_) {
            kernels::filters_to_blocks(blocks_, weights, copy, context.stream);
        } else if (is_padded()) {
            kernels::pad_channels(rows_, weights, copy, context.stream);
        } else {
            kernels::cast_from_f32(weights, dtype_, copy, elements_, context.stream);
        }
        if (filled_ == bytes_) return;
        check(cudaMemsetAsync(static_cast<std::byte*>(copy) + filled_, 0, bytes_ - filled_,
                              context.stream),
              "padding filters");
    }

    void store_gradient(const void* copy, float* gradient, const Context& context) const {
        if (uses_masters_) return;
        if (is_blocked_) {
            kernels::filters_from_blocks(blocks_, copy, gradient, context.stream);
        } else if (is_padded()) {
            kernels::strip_channels(rows_, copy, gradient, context.stream);
        } else {
            kernels::cast_to_f32(dtype_, copy, gradient, elements_, context.stream);
        }
    }

private:
    bool is_padded() const { return elements_ != rows_.padded_elements(); }

    DType dtype_;
    std::int64_t elements_;  // of the master weights
    bool is_blocked_;
    kernels::PaddedRows rows_;
    kernels::BlockedImages blocks_;
    std::size_t filled_ = 0, bytes_ = 0;  // of a copy, without and with padding filters
    bool uses_masters_ = true;
};

class ConvolutionKernel final : public OperationKernel<ops::Convolution, Context> {
public:
    ConvolutionKernel(const ops::Convolution& op, const KernelOptions& options,
                      const Context& context)
        : OperationKernel(op, options, context), layout_(op, options) {
        const ConvolutionShape shape = convolution_shape(op, options);
        if (reads_blocks(op, options)) {
            blocks_ = {options.compute,
                       op.input[0],
                       static_cast<int>(op.input[1]),
                       static_cast<int>(op.input[2]),
                       static_cast<int>(stored_channels(op.input[3])),
                       static_cast<int>(stored_channels(op.input[3])),
                       1};
            image_bytes_ = rounded_up(bytes_of(Operand::image, shape));
        }
        ensure(!op.sums || shape.filters == op.filters, "no sums for {} filters", op.filters);
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
        KernelMemory bytes;
        bytes.prepared_bytes = layout_.copy_bytes();
        if (trains()) bytes.saved_bytes = image_bytes_;
        bytes.workspace_bytes =
            std::max({(trains() ? 0 : image_bytes_) + forward_.workspace_bytes(),
                      input_gradient_.workspace_bytes(),
                      gradient_bytes() + weight_gradient_.workspace_bytes()});
        return bytes;
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

    std::size_t summed_bytes_ = 0;  // of the output if it carries sums, else 0
    FilterLayout layout_;
    kernels::BlockedImages blocks_;
    std::size_t image_bytes_ = 0;  // of the image in blocks; 0 if cuDNN reads the input
    void* blocked_image_ = nullptr;
    ChosenPlan forward_, weight_gradient_, input_gradient_;
    Operands forward_operands_, weight_operands_, input_operands_;
    void* filters_ = nullptr;
    std::byte* workspace_ = nullptr;
};

using P = ConvolutionPass;

/// Each cuDNN graph that reads the image normalizes it; the normalized image is never stored. Saved
/// for the backward pass: the statistics, and scale and shift in the image's type, as cuDNN
/// requires. The input_gradient pass computes all gradients: gamma and beta need the input's
/// gradient.
class NormConvolutionKernel final : public OperationKernel<ops::NormConvolution, Context> {
public:
    NormConvolutionKernel(const ops::NormConvolution& op, const KernelOptions& options,
                          const Context& context)
        : OperationKernel(op, options, context),
          shape_(convolution_shape(op.convolution, options)),
          norm_(op.norm, options.compute),
          layout_(op.convolution, options) {
        ensure(trains() && options.needs_input_gradient,
               "a fused norm and convolution is supported only in training, after other layers");
        ensure(op.norm.relu && !op.norm.add && op.convolution.sums,
               "a norm fused with a convolution must have a ReLU and no addition, and the "
               "convolution must output sums");
        ensure(shape_.filters == op.convolution.filters, "no sums for {} filters",
               op.convolution.filters);
        forward_ = ChosenPlan(shape_, P::normalized_forward_with_statistics, context);
        weight_gradient_ = ChosenPlan(shape_, P::normalized_weight_gradient, context);
        input_gradient_ = ChosenPlan(shape_, P::input_gradient_with_norm, context);
    }

    KernelMemory memory() const override {
        KernelMemory bytes;
        bytes.saved_bytes = norm_.saved_bytes() + 2 * factor_bytes();
        bytes.prepared_bytes = layout_.copy_bytes();
        bytes.workspace_bytes = std::max({norm_.workspace_bytes(), forward_.workspace_bytes(),
                                          layout_.copy_bytes() + weight_gradient_.workspace_bytes(),
                                          coefficient_bytes() + input_gradient_.workspace_bytes()});
        return bytes;
    }

    void bind(const KernelTensors& tensors) override {
        OperationKernel::bind(tensors);
        workspace_ = static_cast<std::byte*>(tensors.workspace);
        filters_ = layout_.copy_bytes() > 0 ? tensors.prepared : tensors.parameters[2];
        norm_.bind(tensors.inputs[0],
                   {tensors.parameters[0], tensors.parameters[1], tensors.running_mean,
                    tensors.running_variance},
                   tensors.saved);
        auto* factors = static_cast<std::byte*>(tensors.saved) + norm_.saved_bytes();
        scale_ = factor_bytes() > 0 ? factors : static_cast<void*>(norm_.statistics().scale);
        shift_ = factor_bytes() > 0 ? factors + factor_bytes()
                                    : static_cast<void*>(norm_.statistics().shift);
        bind_forward();
        bind_weight_gradient();
        bind_input_gradient();
    }

    std::vector<WorkingCopy> working_copies() const override {
        if (!layout_.is_plain_copy()) return {};
        return {{2, filters_}};
    }

private:
    void prepare() override { layout_.update_copy(tensors_.parameters[2], filters_, context_); }
    void forward() override {
        norm_.compute_statistics(workspace_, context_.stream);
        round(norm_.statistics().scale, scale_);
        round(norm_.statistics().shift, shift_);
        forward_.run(forward_operands_, workspace_);
    }
    void input_gradient() override {
        weight_gradient_.run(weight_operands_, workspace_ + layout_.copy_bytes());
        layout_.store_gradient(workspace_, tensors_.parameter_gradients[2], context_);
        run_input_gradient();
    }

    /// Bytes of scale or shift in the image's type; 0 where that is fp32.
    std::size_t factor_bytes() const {
        if (shape_.dtype == DType::f32) return 0;
        return array_bytes(shape_.channels, shape_.dtype);
    }
    void round(const float* from, void* to) const {
        if (factor_bytes() == 0) return;
        kernels::cast_from_f32(from, shape_.dtype, to, shape_.channels, context_.stream);
    }
    /// Bytes of factor_dy, factor_x and constant (see Operand), (C) f32 each.
    std::size_t coefficient_bytes() const { return array_bytes(3 * shape_.channels); }

    void bind_forward() {
        const Sums sums =
            sums_of(tensors_.output, bytes_of(Operand::output, shape_), shape_.filters);
        forward_operands_[Operand::image] = tensors_.inputs[0];
        forward_operands_[Operand::filters] = filters_;
        forward_operands_[Operand::scale] = scale_;
        forward_operands_[Operand::shift] = shift_;
        forward_operands_[Operand::output] = tensors_.output;
        forward_operands_[Operand::sum] = sums.sum;
        forward_operands_[Operand::square_sum] = sums.squares;
    }

    /// cuDNN writes a filter gradient that needs conversion to the start of the workspace.
    void bind_weight_gradient() {
        weight_operands_[Operand::image] = tensors_.inputs[0];
        weight_operands_[Operand::scale] = scale_;
        weight_operands_[Operand::shift] = shift_;
        weight_operands_[Operand::output] = output_gradient();
        weight_operands_[Operand::gradient] = layout_.copy_bytes() > 0
                                                  ? static_cast<void*>(workspace_)
                                                  : tensors_.parameter_gradients[2];
    }

    void bind_input_gradient() {
        auto& at = input_operands_;
        at[Operand::output] = output_gradient();
        at[Operand::filters] = filters_;
        at[Operand::image] = tensors_.input_gradients[0];
        at[Operand::norm_input] = tensors_.inputs[0];
        at[Operand::mean] = norm_.statistics().mean;
        at[Operand::inverse_deviation] = norm_.statistics().inverse_deviation;
        at[Operand::scale] = tensors_.parameters[0];
        at[Operand::shift] = tensors_.parameters[1];
        at[Operand::gamma_gradient] = tensors_.parameter_gradients[0];
        at[Operand::beta_gradient] = tensors_.parameter_gradients[1];
        at[Operand::factor_dy] = coefficients();
        at[Operand::factor_x] = coefficients() + shape_.channels;
        at[Operand::constant] = coefficients() + 2 * shape_.channels;
    }
    float* coefficients() const { return reinterpret_cast<float*>(workspace_); }

    /// Computes the gradient through the convolution and the ReLU, then in place through the norm.
    /// To find where the ReLU passed, cuDNN uses fp32 scale and shift, but the forward pass rounds
    /// them to the type of the image. The results may differ for values near 0.
    void run_input_gradient() const {
        input_gradient_.run(input_operands_, workspace_ + coefficient_bytes());
        const kernels::BatchNormGradientArguments arguments{
            .x = norm_.x(),
            .dy0 = tensors_.input_gradients[0],
            .gamma = norm_.gamma(),
            .statistics = norm_.statistics(),
            .dx = tensors_.input_gradients[0],
            .gamma_gradient = tensors_.parameter_gradients[0],
            .beta_gradient = tensors_.parameter_gradients[1],
            .coefficients = coefficients(),
            .workspace = workspace_};
        kernels::batch_norm_gradient_apply(norm_.shape(), arguments, context_.stream);
    }

    ConvolutionShape shape_;
    WholeBatchNorm norm_;
    FilterLayout layout_;
    ChosenPlan forward_, weight_gradient_, input_gradient_;
    Operands forward_operands_, weight_operands_, input_operands_;
    void* filters_ = nullptr;
    void* scale_ = nullptr;
    void* shift_ = nullptr;
    std::byte* workspace_ = nullptr;
};

}  // namespace

HPCAI_BUILD_KERNEL(Convolution)
HPCAI_BUILD_KERNEL(NormConvolution)

}  // namespace hpcai::device::cuda
