// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise.hpp"

#include <hpcai/base/error.hpp>

#include "kernels/cast.hpp"

#include "layout.hpp"

namespace hpcai::device::cuda {
namespace {

class ReluKernel final : public OperationKernel<ops::Relu, Context> {
public:
    using OperationKernel::OperationKernel;

private:
    void forward() override {
        kernels::relu(options_.compute, tensors_.inputs[0], tensors_.output, count_,
                      context_.stream);
    }
    void input_gradient() override {
        kernels::relu_gradient({.dtype = options_.compute,
                                .y = tensors_.output,
                                .dy0 = output_gradient(),
                                .dy1 = added_output_gradient(),
                                .dx = tensors_.input_gradients[0],
                                .count = count_},
                               context_.stream);
    }

    const std::int64_t count_ = stored_shape(op_.input).elements();
};

class AddKernel final : public OperationKernel<ops::Add, Context> {
public:
    using OperationKernel::OperationKernel;

private:
    void forward() override { sum(tensors_.inputs[0], tensors_.inputs[1], tensors_.output); }
    void input_gradient() override {
        for (void* to : tensors_.input_gradients) {
            if (to != nullptr) sum(output_gradient(), added_output_gradient(), to);
        }
    }
    void sum(const void* a, const void* b, void* to) const {
        kernels::add({.dtype = options_.compute, .a = a, .b = b, .sum = to, .count = count_},
                     context_.stream);
    }

    const std::int64_t count_ = stored_shape(op_.input).elements();
};

class InputNormalizeKernel final : public OperationKernel<ops::InputNormalize, Context> {
public:
    InputNormalizeKernel(const ops::InputNormalize& op, const KernelOptions& options,
                         const Context& context)
        : OperationKernel(op, options, context) {
        const auto channels = static_cast<std::size_t>(op.input[3]);
        ensure(op.mean.size() == channels && op.standard_deviation.size() == channels,
               "{} means and {} standard deviations do not match {} channels", op.mean.size(),
               op.standard_deviation.size(), channels);
        constexpr auto kMax = static_cast<std::size_t>(kernels::NormalizeArguments::kMaxChannels);
        ensure(channels <= kMax, "the CUDA engine normalizes up to {} channels, not {}", kMax,
               channels);
        arguments_.dtype = options.compute;
        arguments_.count = op.input[0] * op.input[1] * op.input[2];
        arguments_.channels = static_cast<int>(op.input[3]);
        arguments_.padded_channels = static_cast<int>(stored_channels(op.input[3]));
        for (std::size_t c = 0; c < channels; ++c) {
            arguments_.scale[c] = static_cast<float>(1 / (255 * op.standard_deviation[c]));
            arguments_.shift[c] = static_cast<float>(-op.mean[c] / op.standard_deviation[c]);
        }
    }

    void bind(const KernelTensors& tensors) override {
        arguments_.pixels = static_cast<const std::uint8_t*>(tensors.inputs[0]);
        arguments_.normalized = tensors.output;
    }

private:
    void forward() override { kernels::input_normalize(arguments_, context_.stream); }

    kernels::NormalizeArguments arguments_;
};

/// Converts images, which are already normalized, to the compute type.
class ConvertImagesKernel final : public OperationKernel<ops::InputNormalize, Context> {
public:
    ConvertImagesKernel(const ops::InputNormalize& op, const KernelOptions& options,
                        const Context& context)
        : OperationKernel(op, options, context) {
        ensure(is_floating(op.dtype), "images must be u8 or floats, not {}", name_of(op.dtype));
    }

private:
    void forward() override {
        kernels::pad_rows({.dtype = options_.compute,
                           .rows = op_.input[0] * op_.input[1] * op_.input[2],
                           .channels = static_cast<int>(op_.input[3]),
                           .padded_channels = static_cast<int>(stored_channels(op_.input[3]))},
                          op_.dtype, tensors_.inputs[0], tensors_.output, context_.stream);
    }
};

class BiasKernel final : public OperationKernel<ops::Bias, Context> {
public:
    using OperationKernel::OperationKernel;

    KernelMemory memory() const override {
        if (!trains()) return {};
        return {.workspace_bytes = kernels::bias_workspace_bytes(shape_)};
    }

private:
    void forward() override {
        kernels::bias(shape_,
                      {tensors_.inputs[0], tensors_.parameters[0], tensors_.output, op_.relu},
                      context_.stream);
    }
    void input_gradient() override {
        kernels::bias_gradient(shape_,
                               {.y = op_.relu ? tensors_.output : nullptr,
                                .dy0 = output_gradient(),
                                .dy1 = added_output_gradient(),
                                .dx = tensors_.input_gradients[0],
                                .bias_gradient = tensors_.parameter_gradients[0],
                                .workspace = tensors_.workspace},
                               context_.stream);
    }

    const kernels::BiasShape shape_{options_.compute, op_.input[0] * op_.input[1] * op_.input[2],
                                    op_.input[3], stored_channels(op_.input[3])};
};

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
                                        .dy1 = added_output_gradient(),
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

HPCAI_BUILD_KERNEL(Relu)
HPCAI_BUILD_KERNEL(Add)

KernelPtr build(const ops::InputNormalize& op, const KernelOptions& options,
                const Context& context) {
    if (op.dtype == DType::u8) return std::make_unique<InputNormalizeKernel>(op, options, context);
    return std::make_unique<ConvertImagesKernel>(op, options, context);
}

HPCAI_BUILD_KERNEL(Bias)
HPCAI_BUILD_KERNEL(UpsampleAdd)

}  // namespace hpcai::device::cuda
