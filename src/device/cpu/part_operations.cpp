// SPDX-License-Identifier: Apache-2.0
#include "channel_parts.hpp"

namespace hpcai::device::cpu {
namespace {

std::vector<ops::Pass> passes_of(const KernelOptions& options) {
    const bool goes_back = options.mode == Mode::training && options.needs_input_gradient;
    if (!goes_back) return {ops::Pass::forward};
    return {ops::Pass::forward, ops::Pass::input_gradient};
}

/// Gradients have the compute type, whatever the values have.
class AllGatherKernel final : public Kernel {
public:
    AllGatherKernel(const ops::AllGather& op, const KernelOptions& options, const Context& context)
        : op_(op),
          options_(options),
          values_(output_shape(op), op.dtype.value_or(options.compute), options.exchange, context),
          gradients_(output_shape(op), options.compute, options.exchange, context) {}

    KernelMemory memory() const override {
        return {.workspace_bytes = op_.sums_gradients ? gradients_.workspace_bytes() : 0};
    }
    std::vector<ops::Pass> passes() const override { return passes_of(options_); }
    void bind(const KernelTensors& tensors) override { tensors_ = tensors; }

    void run(ops::Pass pass) override {
        if (pass == ops::Pass::forward) return values_.gather(tensors_.inputs[0], tensors_.output);
        const void* whole = tensors_.output_gradients[0];
        void* mine = tensors_.input_gradients[0];
        if (!op_.sums_gradients) return gradients_.take(op_.part, whole, mine);
        gradients_.scatter_sum(whole, mine, static_cast<float*>(tensors_.workspace));
    }

private:
    ops::AllGather op_;
    KernelOptions options_;
    ChannelParts values_, gradients_;
    KernelTensors tensors_;
};

class ReduceScatterKernel final : public Kernel {
public:
    ReduceScatterKernel(const ops::ReduceScatter& op, const KernelOptions& options,
                        const Context& context)
        : options_(options), values_(op.input, options.compute, options.exchange, context) {}

    KernelMemory memory() const override { return {.workspace_bytes = values_.workspace_bytes()}; }
    std::vector<ops::Pass> passes() const override { return passes_of(options_); }
    void bind(const KernelTensors& tensors) override { tensors_ = tensors; }

    void run(ops::Pass pass) override {
        if (pass == ops::Pass::forward) {
            values_.scatter_sum(tensors_.inputs[0], tensors_.output,
                                static_cast<float*>(tensors_.workspace));
        } else {
            values_.gather(tensors_.output_gradients[0], tensors_.input_gradients[0]);
        }
    }

private:
    KernelOptions options_;
    ChannelParts values_;
    KernelTensors tensors_;
};

}  // namespace

std::unique_ptr<Kernel> build_all_gather(const ops::AllGather& op, const KernelOptions& options,
                                         const Context& context) {
    return std::make_unique<AllGatherKernel>(op, options, context);
}

std::unique_ptr<Kernel> build_reduce_scatter(const ops::ReduceScatter& op,
                                             const KernelOptions& options, const Context& context) {
    return std::make_unique<ReduceScatterKernel>(op, options, context);
}

}  // namespace hpcai::device::cpu
