// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "batch_primitive.hpp"

namespace hpcai::device::cpu {
namespace {

using PoolForward = dnnl::pooling_forward;
using PoolBackward = dnnl::pooling_backward;

class MaxPoolKernel final : public Kernel {
public:
    MaxPoolKernel(const ops::MaxPool& op, const KernelOptions& options, const Context& context)
        : context_(context), options_(options), op_(op) {
        const auto parts = batch_parts(context, op.input[0]);
        forward_ = BatchPrimitive(context, parts,
                                  [&](std::int64_t samples) { return plan_forward(samples); });
        if (options.mode == Mode::inference) return;
        backward_ = BatchPrimitive(context, parts,
                                   [&](std::int64_t samples) { return plan_backward(samples); });
    }

    KernelMemory memory() const override {
        return {winner_bytes_, 0,
                std::max(forward_.workspace_bytes(), backward_.workspace_bytes())};
    }
    std::vector<ops::Pass> passes() const override {
        if (options_.mode == Mode::inference) return {ops::Pass::forward};
        return {ops::Pass::forward, ops::Pass::input_gradient};
    }

    void bind(const KernelTensors& tensors) override {
        forward_.bind_workspace(tensors.workspace);
        forward_.bind(DNNL_ARG_SRC, tensors.inputs[0]);
        forward_.bind(DNNL_ARG_DST, tensors.output);
        if (options_.mode == Mode::inference) return;
        forward_.bind(DNNL_ARG_WORKSPACE, tensors.saved);
        backward_.bind_workspace(tensors.workspace);
        backward_.bind(DNNL_ARG_WORKSPACE, tensors.saved);
        backward_.bind(DNNL_ARG_DIFF_DST, tensors.output_gradients[0]);
        backward_.bind(DNNL_ARG_DIFF_SRC, tensors.input_gradients[0]);
    }

    void run(ops::Pass pass) override { (pass == ops::Pass::forward ? forward_ : backward_).run(); }

private:
    static constexpr auto kMaximum = dnnl::algorithm::pooling_max;

    /// A part of the batch, and the forward pass that backward takes as a hint.
    struct Part {
        dnnl::memory::desc source, target;
        dnnl::memory::dims strides, window, padding;
        PoolForward::primitive_desc forward;
    };

    Part part_of(std::int64_t samples) const {
        ops::MaxPool op = op_;
        op.input[0] = samples;
        Part part{.source = value_desc(context_.layouts, op.input, options_.compute),
                  .target = value_desc(context_.layouts, output_shape(op), options_.compute),
                  .strides = {op.stride, op.stride},
                  .window = {op.kernel, op.kernel},
                  .padding = {op.padding, op.padding}};
        const auto kind = options_.mode == Mode::training ? dnnl::prop_kind::forward_training
                                                          : dnnl::prop_kind::forward_inference;
        part.forward = {{kind, kMaximum, part.source, part.target, part.strides, part.window,
                         part.padding, part.padding},
                        caller_scratchpad(),
                        context_.engine};
        return part;
    }

    StagedPrimitive plan_forward(std::int64_t samples) {
        const Part part = part_of(samples);
        StagedPrimitive primitive(PoolForward(part.forward), part.forward.scratchpad_desc(),
                                  context_);
        primitive.add(DNNL_ARG_SRC, part.source);
        primitive.add(DNNL_ARG_DST, part.target);
        if (options_.mode == Mode::inference) return primitive;
        // oneDNN's workspace holds the place of each window's maximum.
        primitive.add(DNNL_ARG_WORKSPACE, part.forward.workspace_desc());
        winner_bytes_ += part.forward.workspace_desc().get_size();
        return primitive;
    }

    StagedPrimitive plan_backward(std::int64_t samples) {
        const Part part = part_of(samples);
        const PoolBackward::primitive_desc plan({kMaximum, part.source, part.target, part.strides,
                                                 part.window, part.padding, part.padding},
                                                caller_scratchpad(), context_.engine, part.forward);
        StagedPrimitive primitive(PoolBackward(plan), plan.scratchpad_desc(), context_);
        primitive.add(DNNL_ARG_DIFF_DST, part.target);
        primitive.add(DNNL_ARG_DIFF_SRC, part.source);
        primitive.add(DNNL_ARG_WORKSPACE, part.forward.workspace_desc());
        return primitive;
    }

    const Context& context_;
    KernelOptions options_;
    ops::MaxPool op_;
    BatchPrimitive forward_, backward_;
    std::size_t winner_bytes_ = 0;
};

class GlobalAveragePoolKernel final : public Kernel {
public:
    GlobalAveragePoolKernel(const ops::GlobalAveragePool& op, const KernelOptions& options,
                            const Context& context)
        : loops_(*context.loops),
          mode_(options.mode),
          grid_(tile_grid(context.layouts, op.input, options.compute)) {}

    std::vector<ops::Pass> passes() const override {
        if (mode_ == Mode::inference) return {ops::Pass::forward};
        return {ops::Pass::forward, ops::Pass::input_gradient};
    }
    void bind(const KernelTensors& tensors) override { tensors_ = tensors; }

    void run(ops::Pass pass) override {
        const Tile one{1, grid_.tile.lanes, grid_.tile.lanes, grid_.tile.dtype};
        const float share = 1.0f / static_cast<float>(grid_.tile.pixels);
        const bool forward = pass == ops::Pass::forward;
        void* vectors = forward ? tensors_.output : tensors_.output_gradients[0];  // (N, C)
        void* images = forward ? tensors_.inputs[0] : tensors_.input_gradients[0];
#pragma omp parallel for collapse(2) schedule(static)
        for (std::int64_t image = 0; image < grid_.images; ++image) {
            for (std::int64_t tile = 0; tile < grid_.tiles; ++tile) {
                float lanes[16];
                void* vector = vector_at(vectors, image, tile);
                void* pixels = grid_.at(images, image, tile);
                if (forward) {
                    loops_.pixel_sum(grid_.tile, pixels, lanes);
                } else {
                    loops_.load_floats(one, vector, lanes);
                }
                for (int lane = 0; lane < grid_.tile.lanes; ++lane) lanes[lane] *= share;
                if (forward) {
                    loops_.store_floats(one, lanes, vector);
                } else {
                    loops_.pixel_fill(grid_.tile, lanes, pixels);
                }
            }
        }
    }

private:
    void* vector_at(void* vectors, std::int64_t image, std::int64_t tile) const {
        const std::int64_t element = (image * grid_.tiles + tile) * grid_.tile.lanes;
        return static_cast<std::byte*>(vectors) +
               static_cast<std::size_t>(element) * size_of(grid_.tile.dtype);
    }

    const SimdKernels& loops_;
    Mode mode_;
    TileGrid grid_;
    KernelTensors tensors_;
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

}  // namespace hpcai::device::cpu
