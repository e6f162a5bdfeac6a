// SPDX-License-Identifier: Apache-2.0
#include "channel_parts.hpp"

namespace hpcai::device::cpu {
namespace {

/// Gradients have the compute type, whatever the type of the values.
class AllGatherKernel final : public OperationKernel<ops::AllGather, Context> {
public:
    AllGatherKernel(const ops::AllGather& op, const KernelOptions& options, const Context& context)
        : OperationKernel(op, options, context),
          values_(output_shape(op), op.dtype.value_or(options.compute), options.exchange, context),
          gradients_(output_shape(op), options.compute, options.exchange, context) {}

    KernelMemory memory() const override {
        return {.workspace_bytes = op_.sums_gradients ? gradients_.workspace_bytes() : 0};
    }

private:
    void forward() override { values_.gather(tensors_.inputs[0], tensors_.output); }
    void input_gradient() override {
        const void* whole = output_gradient();
        void* mine = tensors_.input_gradients[0];
        if (!op_.sums_gradients) return gradients_.take(op_.part, whole, mine);
        gradients_.scatter_sum(whole, mine, static_cast<float*>(tensors_.workspace));
    }

    ChannelParts values_, gradients_;
};

class ReduceScatterKernel final : public OperationKernel<ops::ReduceScatter, Context> {
public:
    ReduceScatterKernel(const ops::ReduceScatter& op, const KernelOptions& options,
                        const Context& context)
        : OperationKernel(op, options, context),
          values_(op.input, options.compute, options.exchange, context) {}

    KernelMemory memory() const override { return {.workspace_bytes = values_.workspace_bytes()}; }

private:
    void forward() override {
        values_.scatter_sum(tensors_.inputs[0], tensors_.output,
                            static_cast<float*>(tensors_.workspace));
    }
    void input_gradient() override {
        values_.gather(output_gradient(), tensors_.input_gradients[0]);
    }

    ChannelParts values_;
};

}  // namespace

KernelPtr build(const ops::AllGather& op, const KernelOptions& options, const Context& context) {
    return std::make_unique<AllGatherKernel>(op, options, context);
}

KernelPtr build(const ops::ReduceScatter& op, const KernelOptions& options,
                const Context& context) {
    return std::make_unique<ReduceScatterKernel>(op, options, context);
}

}  // namespace hpcai::device::cpu
