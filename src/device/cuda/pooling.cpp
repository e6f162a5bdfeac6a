// SPDX-License-Identifier: Apache-2.0
#include "kernels/pooling.hpp"

#include "kernels/cast.hpp"

#include "layout.hpp"

namespace hpcai::device::cuda {
namespace {

class MaxPoolKernel final : public Kernel {
public:
    MaxPoolKernel(const ops::MaxPool& op, const KernelOptions& options, const Context& context)
        : context_(context), mode_(options.mode) {
        const Shape input = stored_shape(op.input), output = stored_shape(output_shape(op));
        shape_ = {.dtype = options.compute,
                  .images = input[0],
                  .height = static_cast<int>(input[1]),
                  .width = static_cast<int>(input[2]),
                  .channels = static_cast<int>(input[3]),
                  .output_height = static_cast<int>(output[1]),
                  .output_width = static_cast<int>(output[2]),
                  .kernel = static_cast<int>(op.kernel),
                  .stride = static_cast<int>(op.stride),
                  .padding = static_cast<int>(op.padding)};
        if (mode_ == Mode::training) winner_bytes_ = storage_bytes(output, DType::u8);
    }

    KernelMemory memory() const override { return {winner_bytes_, 0, 0}; }
    std::size_t max_output_gradients() const override { return 2; }
    std::vector<ops::Pass> passes() const override {
        if (mode_ == Mode::inference) return {ops::Pass::forward};
        return {ops::Pass::forward, ops::Pass::input_gradient};
    }
    void bind(const KernelTensors& tensors) override {
        tensors_ = tensors;
        winner_ = mode_ == Mode::training ? static_cast<std::uint8_t*>(tensors.saved) : nullptr;
    }

    void run(ops::Pass pass) override {
        if (pass == ops::Pass::forward) {
            kernels::max_pool(shape_, tensors_.inputs[0], tensors_.output, winner_,
                              context_.stream);
            return;
        }
        const auto& gradients = tensors_.output_gradients;
        kernels::max_pool_gradient(shape_,
                                   {.winner = winner_,
                                    .dy0 = gradients[0],
                                    .dy1 = gradients.size() > 1 ? gradients[1] : nullptr,
                                    .dx = tensors_.input_gradients[0]},
                                   context_.stream);
    }

private:
    const Context& context_;
    Mode mode_;
    kernels::PoolShape shape_;
    std::size_t winner_bytes_ = 0;
    KernelTensors tensors_;
    std::uint8_t* winner_ = nullptr;  // (N, P, Q, C)
};

/// Rows (N, C) are packed. Where an image is stored with more channels than it has, they pass
/// through the workspace: with the image's channels, and in fp32 with their own.
class GlobalAveragePoolKernel final : public Kernel {
public:
    GlobalAveragePoolKernel(const ops::GlobalAveragePool& op, const KernelOptions& options,
                            const Context& context)
        : context_(context),
          mode_(options.mode),
          shape_{options.compute, op.input[0], op.input[1] * op.input[2],
                 static_cast<int>(stored_channels(op.input[3]))},
          rows_{options.compute, op.input[0], static_cast<int>(op.input[3]), shape_.channels} {}

    KernelMemory memory() const override {
        if (!padded()) return {};
        return {0, 0, wide_bytes() + static_cast<std::size_t>(elements()) * sizeof(float)};
    }
    std::vector<ops::Pass> passes() const override {
        if (mode_ == Mode::inference) return {ops::Pass::forward};
        return {ops::Pass::forward, ops::Pass::input_gradient};
    }
    void bind(const KernelTensors& tensors) override {
        tensors_ = tensors;
        if (!padded()) return;
        wide_ = tensors.workspace;
        narrow_ = reinterpret_cast<float*>(static_cast<std::byte*>(wide_) + wide_bytes());
    }

    void run(ops::Pass pass) override {
        const bool forward = pass == ops::Pass::forward;
        void* vectors = forward ? tensors_.output : tensors_.output_gradients[0];
        if (!padded()) {
            pool(forward, vectors);
        } else if (forward) {
            pool(forward, wide_);
            kernels::strip_channels(rows_, wide_, narrow_, context_.stream);
            kernels::cast_from_f32(narrow_, rows_.dtype, vectors, elements(), context_.stream);
        } else {
            kernels::cast_to_f32(rows_.dtype, vectors, narrow_, elements(), context_.stream);
            kernels::pad_channels(rows_, narrow_, wide_, context_.stream);
            pool(forward, wide_);
        }
    }

private:
    bool padded() const { return rows_.channels != rows_.padded_channels; }
    std::int64_t elements() const { return rows_.rows * rows_.channels; }
    std::size_t wide_bytes() const {
        return rounded_up(static_cast<std::size_t>(rows_.rows * rows_.padded_channels) *
                          size_of(rows_.dtype));
    }

    void pool(bool forward, void* vectors) const {
        if (forward) {
            kernels::global_average_pool(shape_, tensors_.inputs[0], vectors, context_.stream);
        } else {
            kernels::global_average_pool_gradient(shape_, vectors, tensors_.input_gradients[0],
                                                  context_.stream);
        }
    }

    const Context& context_;
    Mode mode_;
    kernels::GlobalPoolShape shape_;
    kernels::PaddedRows rows_;
    KernelTensors tensors_;
    void* wide_ = nullptr;     // (N, stored C)
    float* narrow_ = nullptr;  // (N, C)
};

}  // namespace

std::unique_ptr<Kernel> build_max_pool(const ops::MaxPool& op, const KernelOptions& options,
                                       const Context& context) {
    return std::make_unique<MaxPoolKernel>(op, options, context);
}

std::unique_ptr<Kernel> build_global_average_pool(const ops::GlobalAveragePool& op,
                                                  const KernelOptions& options,
                                                  const Context& context) {
    return std::make_unique<GlobalAveragePoolKernel>(op, options, context);
}

}  // namespace hpcai::device::cuda
