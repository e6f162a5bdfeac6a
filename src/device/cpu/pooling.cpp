// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "batch_primitive.hpp"

namespace hpcai::device::cpu {
namespace {

using PoolForward = dnnl::pooling_forward;
using PoolBackward = dnnl::pooling_backward;

class MaxPoolKernel final : public OperationKernel<ops::MaxPool, Context> {
public:
    MaxPoolKernel(const ops::MaxPool& op, const KernelOptions& options, const Context& context)
        : OperationKernel(op, options, context) {
        const auto sizes = sub_batch_sizes(context, op.input[0]);
        forward_ = BatchPrimitive(context, sizes,
                                  [&](std::int64_t samples) { return plan_forward(samples); });
        if (!trains()) return;
        backward_ = BatchPrimitive(context, sizes,
                                   [&](std::int64_t samples) { return plan_backward(samples); });
    }

    KernelMemory memory() const override {
        return {
            .saved_bytes = argmax_bytes_,
            .workspace_bytes = std::max(forward_.workspace_bytes(), backward_.workspace_bytes())};
    }

    void bind(const KernelTensors& tensors) override {
        forward_.bind_workspace(tensors.workspace);
        forward_.bind(DNNL_ARG_SRC, tensors.inputs[0]);
        forward_.bind(DNNL_ARG_DST, tensors.output);
        if (!trains()) return;
        forward_.bind(DNNL_ARG_WORKSPACE, tensors.saved);  // positions of the maxima
        backward_.bind_workspace(tensors.workspace);
        backward_.bind(DNNL_ARG_WORKSPACE, tensors.saved);
        backward_.bind(DNNL_ARG_DIFF_DST, tensors.output_gradients[0]);
        backward_.bind(DNNL_ARG_DIFF_SRC, tensors.input_gradients[0]);
    }

private:
    void forward() override { forward_.run(); }
    void input_gradient() override { backward_.run(); }

    static constexpr auto kMaximum = dnnl::algorithm::pooling_max;

    /// A sub-batch, and the plan of its forward pass, which the plan of the backward pass needs.
    struct SubBatch {
        dnnl::memory::desc source, target;
        PoolForward::primitive_desc forward;
    };

    /// Calls `plan` with the window's geometry; only oneDNN 3 takes its dilation.
    template <typename Pool>
    auto with_window(const auto& plan) const {
        if constexpr (HasDescription<Pool>) {
            return plan(strides_, window_, padding_, padding_);
        } else {
            return plan(strides_, window_, dnnl::memory::dims{0, 0}, padding_, padding_);
        }
    }

    SubBatch sub_batch_of(std::int64_t samples) const {
        ops::MaxPool op = op_;
        op.input[0] = samples;
        SubBatch sub_batch{
            .source = value_desc(context_.layouts, op.input, options_.compute),
            .target = value_desc(context_.layouts, output_shape(op), options_.compute)};
        const auto kind =
            trains() ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
        sub_batch.forward = with_window<PoolForward>([&](const auto&... window) {
            return plan_forward_pass<PoolForward>(context_.engine, kind, kMaximum, sub_batch.source,
                                                  sub_batch.target, window...);
        });
        return sub_batch;
    }

    StagedPrimitive plan_forward(std::int64_t samples) {
        const SubBatch sub_batch = sub_batch_of(samples);
        StagedPrimitive primitive(PoolForward(sub_batch.forward),
                                  sub_batch.forward.scratchpad_desc(), context_);
        primitive.add(DNNL_ARG_SRC, sub_batch.source);
        primitive.add(DNNL_ARG_DST, sub_batch.target);
        if (!trains()) return primitive;
        // The workspace of oneDNN has the position of the maximum in each window.
        primitive.add(DNNL_ARG_WORKSPACE, sub_batch.forward.workspace_desc());
        argmax_bytes_ += sub_batch.forward.workspace_desc().get_size();
        return primitive;
    }

    StagedPrimitive plan_backward(std::int64_t samples) {
        const SubBatch sub_batch = sub_batch_of(samples);
        const auto plan = with_window<PoolBackward>([&](const auto&... window) {
            return plan_backward_pass<PoolBackward>(context_.engine, sub_batch.forward, kMaximum,
                                                    sub_batch.source, sub_batch.target, window...);
        });
        StagedPrimitive primitive(PoolBackward(plan), plan.scratchpad_desc(), context_);
        primitive.add(DNNL_ARG_DIFF_DST, sub_batch.target);
        primitive.add(DNNL_ARG_DIFF_SRC, sub_batch.source);
        primitive.add(DNNL_ARG_WORKSPACE, sub_batch.forward.workspace_desc());
        return primitive;
    }

    const dnnl::memory::dims strides_{op_.stride, op_.stride}, window_{op_.kernel, op_.kernel},
        padding_{op_.padding, op_.padding};
    BatchPrimitive forward_, backward_;
    std::size_t argmax_bytes_ = 0;
};

class GlobalAveragePoolKernel final : public OperationKernel<ops::GlobalAveragePool, Context> {
public:
    using OperationKernel::OperationKernel;

private:
    void forward() override {
        grid_.for_each([&](const TileIndex& at) {
            float lanes[16];
            loops_.pixel_sum(grid_.tile, grid_.at(tensors_.inputs[0], at), lanes);
            average(lanes);
            loops_.store_floats(pixel_tile_, lanes, vector_at(tensors_.output, at));
        });
    }
    void input_gradient() override {
        grid_.for_each([&](const TileIndex& at) {
            float lanes[16];
            loops_.load_floats(pixel_tile_, vector_at(output_gradient(), at), lanes);
            average(lanes);
            loops_.pixel_fill(grid_.tile, lanes, grid_.at(tensors_.input_gradients[0], at));
        });
    }

    void average(float* lanes) const {
        for (int lane = 0; lane < grid_.tile.lanes; ++lane) lanes[lane] *= inverse_pixels_;
    }
    /// Returns the address of a tile's channels in a tensor (N, C).
    void* vector_at(void* vectors, const TileIndex& at) const {
        const std::int64_t element = at.image * op_.input[3] + at.channel;
        return static_cast<std::byte*>(vectors) +
               static_cast<std::size_t>(element) * size_of(grid_.tile.dtype);
    }

    const SimdKernels& loops_ = *context_.loops;
    const TileGrid grid_ = tile_grid(context_.layouts, op_.input, options_.compute);
    const Tile pixel_tile_{1, grid_.tile.lanes, grid_.tile.lanes, grid_.tile.dtype};
    const float inverse_pixels_ = 1.0f / static_cast<float>(grid_.tile.pixels);
};

}  // namespace

HPCAI_BUILD_KERNEL(MaxPool)
HPCAI_BUILD_KERNEL(GlobalAveragePool)

}  // namespace hpcai::device::cpu
