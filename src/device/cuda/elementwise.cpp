// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise.hpp"

#include <hpcai/base/error.hpp>

#include "kernels/input_normalize.hpp"

#include "layout.hpp"

namespace hpcai::device::cuda {
namespace {

class ReluKernel final : public Kernel {
public:
    ReluKernel(const ops::Relu& op, const KernelOptions& options, const Context& context)
        : context_(context), options_(options), count_(stored_shape(op.input).elements()) {}

    std::size_t max_output_gradients() const override { return 2; }
    bool backward_reads_output() const override { return true; }
    std::vector<ops::Pass> passes() const override {
        if (options_.mode == Mode::inference) return {ops::Pass::forward};
        return {ops::Pass::forward, ops::Pass::input_gradient};
    }
    void bind(const KernelTensors& tensors) override { tensors_ = tensors; }

    void run(ops::Pass pass) override {
        if (pass == ops::Pass::forward) {
            kernels::relu(options_.compute, tensors_.inputs[0], tensors_.output, count_,
                          context_.stream);
            return;
        }
        const auto& gradients = tensors_.output_gradients;
        kernels::relu_gradient({.dtype = options_.compute,
                                .y = tensors_.output,
                                .dy0 = gradients[0],
                                .dy1 = second_of(gradients),
                                .dx = tensors_.input_gradients[0],
                                .count = count_},
                               context_.stream);
    }

private:
    const Context& context_;
    KernelOptions options_;
    std::int64_t count_;
    KernelTensors tensors_;
};

class AddKernel final : public Kernel {
public:
    AddKernel(const ops::Add& op, const KernelOptions& options, const Context& context)
        : context_(context), options_(options), count_(stored_shape(op.input).elements()) {}

    std::size_t max_output_gradients() const override { return 2; }
    std::vector<ops::Pass> passes() const override {
        if (options_.mode == Mode::inference) return {ops::Pass::forward};
        return {ops::Pass::forward, ops::Pass::input_gradient};
    }
    void bind(const KernelTensors& tensors) override { tensors_ = tensors; }

    void run(ops::Pass pass) override {
        if (pass == ops::Pass::forward) {
            sum(tensors_.inputs[0], tensors_.inputs[1], tensors_.output);
            return;
        }
        const auto& gradients = tensors_.output_gradients;
        for (void* to : tensors_.input_gradients) {
            if (to != nullptr) sum(gradients[0], second_of(gradients), to);
        }
    }

private:
    void sum(const void* a, const void* b, void* to) const {
        kernels::add({.dtype = options_.compute, .a = a, .b = b, .sum = to, .count = count_},
                     context_.stream);
    }

    const Context& context_;
    KernelOptions options_;
    std::int64_t count_;
    KernelTensors tensors_;
};

class InputNormalizeKernel final : public Kernel {
public:
    InputNormalizeKernel(const ops::InputNormalize& op, const KernelOptions& options,
                         const Context& context)
        : context_(context) {
        const auto channels = static_cast<std::size_t>(op.input[3]);
        ensure(op.mean.size() == channels && op.standard_deviation.size() == channels,
               "{} means and {} deviations for {} channels", op.mean.size(),
               op.standard_deviation.size(), channels);
        constexpr auto kMost = static_cast<std::size_t>(kernels::NormalizeArguments::kMaxChannels);
        ensure(channels <= kMost, "the CUDA engine normalizes up to {} channels, not {}", kMost,
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

    std::vector<ops::Pass> passes() const override { return {ops::Pass::forward}; }
    void bind(const KernelTensors& tensors) override {
        arguments_.pixels = static_cast<const std::uint8_t*>(tensors.inputs[0]);
        arguments_.normalized = tensors.output;
    }
    void run(ops::Pass) override { kernels::input_normalize(arguments_, context_.stream); }

private:
    const Context& context_;
    kernels::NormalizeArguments arguments_;
};

/// Of numbers that are normalized already.
class StoreNumbersKernel final : public Kernel {
public:
    StoreNumbersKernel(const ops::InputNormalize& op, const KernelOptions& options,
                       const Context& context)
        : context_(context),
          arguments_{.from_dtype = op.dtype,
                     .dtype = options.compute,
                     .count = op.input[0] * op.input[1] * op.input[2],
                     .channels = static_cast<int>(op.input[3]),
                     .padded_channels = static_cast<int>(stored_channels(op.input[3]))} {
        ensure(is_floating(op.dtype), "images of {}", name_of(op.dtype));
    }

    std::vector<ops::Pass> passes() const override { return {ops::Pass::forward}; }
    void bind(const KernelTensors& tensors) override {
        arguments_.from = tensors.inputs[0];
        arguments_.to = tensors.output;
    }
    void run(ops::Pass) override { kernels::store_numbers(arguments_, context_.stream); }

private:
    const Context& context_;
    kernels::StoreNumbersArguments arguments_;
};

}  // namespace

std::unique_ptr<Kernel> build_relu(const ops::Relu& op, const KernelOptions& options,
                                   const Context& context) {
    return std::make_unique<ReluKernel>(op, options, context);
}

std::unique_ptr<Kernel> build_add(const ops::Add& op, const KernelOptions& options,
                                  const Context& context) {
    return std::make_unique<AddKernel>(op, options, context);
}

std::unique_ptr<Kernel> build_input_normalize(const ops::InputNormalize& op,
                                              const KernelOptions& options,
                                              const Context& context) {
    if (op.dtype == DType::u8) return std::make_unique<InputNormalizeKernel>(op, options, context);
    return std::make_unique<StoreNumbersKernel>(op, options, context);
}

}  // namespace hpcai::device::cuda
