// SPDX-License-Identifier: Apache-2.0
#include "kernels/pooling.hpp"

#include "kernels/cast.hpp"

#include "whole_batch_norm.hpp"

namespace hpcai::device::cuda {
namespace {

kernels::PoolShape pool_shape(const ops::MaxPool& op, DType dtype) {
    const Shape input = stored_shape(op.input), output = output_shape(op);
    return {.dtype = dtype,
            .images = input[0],
            .height = static_cast<int>(input[1]),
            .width = static_cast<int>(input[2]),
            .channels = static_cast<int>(input[3]),
            .output_height = static_cast<int>(output[1]),
            .output_width = static_cast<int>(output[2]),
            .kernel = static_cast<int>(op.kernel),
            .stride = static_cast<int>(op.stride),
            .padding = static_cast<int>(op.padding)};
}

class MaxPoolKernel final : public OperationKernel<ops::MaxPool, Context> {
public:
    using OperationKernel::OperationKernel;

    KernelMemory memory() const override {
        const Shape winners = stored_shape(output_shape(op_));
        return {.saved_bytes = trains() ? storage_bytes(winners, DType::u8) : 0};
    }
    ops::BackwardReads backward_reads() const override { return {.output_gradients = 2}; }

private:
    /// The maxima's positions in their windows, (N, P, Q, stored_channels(C)); null in inference.
    std::uint8_t* winner() const {
        return trains() ? static_cast<std::uint8_t*>(tensors_.saved) : nullptr;
    }

    void forward() override {
        kernels::max_pool(shape_, tensors_.inputs[0], tensors_.output, winner(), context_.stream);
    }
    void input_gradient() override {
        kernels::max_pool_gradient(shape_,
                                   {.winner = winner(),
                                    .dy0 = output_gradient(),
                                    .dy1 = added_output_gradient(),
                                    .dx = tensors_.input_gradients[0]},
                                   context_.stream);
    }

    const kernels::PoolShape shape_ = pool_shape(op_, options_.compute);
};

/// The output (N, C) has no padding channels. If the images have them, the pooling kernels write or
/// read (N, stored_channels(C)) in the workspace.
class GlobalAveragePoolKernel final : public OperationKernel<ops::GlobalAveragePool, Context> {
public:
    using OperationKernel::OperationKernel;

    KernelMemory memory() const override {
        if (!is_padded()) return {};
        return {.workspace_bytes = array_bytes(rows_.padded_elements(), rows_.dtype)};
    }

private:
    bool is_padded() const { return rows_.channels != rows_.padded_channels; }

    void forward() override {
        void* vectors = is_padded() ? tensors_.workspace : tensors_.output;
        kernels::global_average_pool(shape_, tensors_.inputs[0], vectors, context_.stream);
        if (!is_padded()) return;
        kernels::strip_rows(rows_, vectors, rows_.dtype, tensors_.output, context_.stream);
    }
    void input_gradient() override {
        const void* vectors = output_gradient();
        if (is_padded()) {
            kernels::pad_rows(rows_, rows_.dtype, vectors, tensors_.workspace, context_.stream);
            vectors = tensors_.workspace;
        }
        kernels::global_average_pool_gradient(shape_, vectors, tensors_.input_gradients[0],
                                              context_.stream);
    }

    const kernels::GlobalPoolShape shape_{options_.compute, op_.input[0],
                                          op_.input[1] * op_.input[2],
                                          static_cast<int>(stored_channels(op_.input[3]))};
    const kernels::PaddedRows rows_{.dtype = options_.compute,
                                    .rows = op_.input[0],
                                    .channels = static_cast<int>(op_.input[3]),
                                    .padded_channels = shape_.channels};
};

/// Saved for the backward pass: the statistics and, for each maximum, its x and its position.
class NormPoolKernel final : public OperationKernel<ops::NormPool, Context> {
public:
    NormPoolKernel(const ops::NormPool& op, const KernelOptions& options, const Context& context)
        : OperationKernel(op, options, context), norm_(op.norm, options.compute) {
        ensure(trains() && op.norm.relu && !op.norm.add,
               "a norm fused with a pooling requires training, a ReLU and no addition");
    }

    KernelMemory memory() const override {
        return {.saved_bytes = winner_offset() + array_bytes(maximum_count_, DType::u8),
                .workspace_bytes = kernels::batch_norm_workspace_bytes(norm_.shape())};
    }

    void bind(const KernelTensors& tensors) override {
        OperationKernel::bind(tensors);
        auto* saved = static_cast<std::byte*>(tensors.saved);
        norm_.bind(tensors.inputs[0],
                   {tensors.parameters[0], tensors.parameters[1], tensors.running_mean,
                    tensors.running_variance},
                   saved);
        pool_ = {.x = norm_.x(),
                 .statistics = norm_.statistics(),
                 .y = tensors.output,
                 .winner_x = saved + norm_.saved_bytes(),
                 .winner = reinterpret_cast<std::uint8_t*>(saved + winner_offset())};
    }

private:
    std::size_t winner_offset() const {
        return norm_.saved_bytes() + array_bytes(maximum_count_, options_.compute);
    }

    void forward() override {
        norm_.compute_statistics(tensors_.workspace, context_.stream);
        kernels::batch_norm_pool(shape_, pool_, context_.stream);
    }
    void input_gradient() override {
        kernels::batch_norm_pool_gradient(
            shape_,
            {.x = pool_.x,
             .winner = pool_.winner,
             .norm = {.x = pool_.winner_x,
                      .dy0 = output_gradient(),
                      .dy1 = added_output_gradient(),
                      .gamma = norm_.gamma(),
                      .statistics = pool_.statistics,
                      .dx = tensors_.input_gradients[0],
                      .gamma_gradient = tensors_.parameter_gradients[0],
                      .beta_gradient = tensors_.parameter_gradients[1],
                      .workspace = tensors_.workspace}},
            context_.stream);
    }

    WholeBatchNorm norm_;
    kernels::BatchNormPoolArguments pool_;
    const kernels::PoolShape shape_ = pool_shape(op_.pool, options_.compute);
    const std::int64_t maximum_count_ = output_shape(op_).elements();
};

}  // namespace

HPCAI_BUILD_KERNEL(MaxPool)
HPCAI_BUILD_KERNEL(NormPool)
HPCAI_BUILD_KERNEL(GlobalAveragePool)

}  // namespace hpcai::device::cuda
