// SPDX-License-Identifier: Apache-2.0
#include "kernels/pooling.hpp"

#include "kernels/cast.hpp"

#include "layout.hpp"

namespace hpcai::device::cuda {
namespace {

class MaxPoolKernel final : public OperationKernel<ops::MaxPool, Context> {
public:
    using OperationKernel::OperationKernel;

    KernelMemory memory() const override {
        return {.saved_bytes = trains() ? storage_bytes(output_, DType::u8) : 0};
    }
    std::size_t max_output_gradients() const override { return 2; }

private:
    /// The position of the maximum in each window, (N, P, Q, C).
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
                                    .dy1 = second_output_gradient(),
                                    .dx = tensors_.input_gradients[0]},
                                   context_.stream);
    }

    const Shape input_ = stored_shape(op_.input), output_ = stored_shape(output_shape(op_));
    const kernels::PoolShape shape_{.dtype = options_.compute,
                                    .images = input_[0],
                                    .height = static_cast<int>(input_[1]),
                                    .width = static_cast<int>(input_[2]),
                                    .channels = static_cast<int>(input_[3]),
                                    .output_height = static_cast<int>(output_[1]),
                                    .output_width = static_cast<int>(output_[2]),
                                    .kernel = static_cast<int>(op_.kernel),
                                    .stride = static_cast<int>(op_.stride),
                                    .padding = static_cast<int>(op_.padding)};
};

/// Rows (N, C) are packed. If images have padding channels, rows are converted in the workspace,
/// which has them with padding channels and, in fp32, without.
class GlobalAveragePoolKernel final : public OperationKernel<ops::GlobalAveragePool, Context> {
public:
    using OperationKernel::OperationKernel;

    KernelMemory memory() const override {
        if (!is_padded()) return {};
        return {.workspace_bytes =
                    padded_bytes() + static_cast<std::size_t>(elements()) * sizeof(float)};
    }
    void bind(const KernelTensors& tensors) override {
        OperationKernel::bind(tensors);
        if (!is_padded()) return;
        padded_ = tensors.workspace;
        unpadded_ = array_at(padded_, 1, padded_bytes());
    }

private:
    bool is_padded() const { return rows_.channels != rows_.padded_channels; }
    std::int64_t elements() const { return rows_.rows * rows_.channels; }
    std::size_t padded_bytes() const {
        return array_bytes(rows_.rows * rows_.padded_channels, rows_.dtype);
    }

    void forward() override {
        void* vectors = is_padded() ? padded_ : tensors_.output;
        kernels::global_average_pool(shape_, tensors_.inputs[0], vectors, context_.stream);
        if (!is_padded()) return;
        kernels::strip_channels(rows_, padded_, unpadded_, context_.stream);
        kernels::cast_from_f32(unpadded_, rows_.dtype, tensors_.output, elements(),
                               context_.stream);
    }
    void input_gradient() override {
        const void* vectors = output_gradient();
        if (is_padded()) {
            kernels::cast_to_f32(rows_.dtype, vectors, unpadded_, elements(), context_.stream);
            kernels::pad_channels(rows_, unpadded_, padded_, context_.stream);
            vectors = padded_;
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
    void* padded_ = nullptr;     // (N, stored C)
    float* unpadded_ = nullptr;  // (N, C)
};

}  // namespace

HPCAI_BUILD_KERNEL(MaxPool)
HPCAI_BUILD_KERNEL(GlobalAveragePool)

}  // namespace hpcai::device::cuda
