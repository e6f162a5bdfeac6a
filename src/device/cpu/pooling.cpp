// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "context.hpp"

namespace hpcai::device::cpu {
namespace {

using PoolForward = dnnl::pooling_forward;
using PoolBackward = dnnl::pooling_backward;

class MaxPoolKernel final : public Kernel {
public:
    MaxPoolKernel(const ops::MaxPool& op, const KernelOptions& options, const Context& context)
        : context_(context), mode_(options.mode) {
        const auto source = value_desc(context.layouts, op.input, options.compute);
        const auto target = value_desc(context.layouts, output_shape(op), options.compute);
        const dnnl::memory::dims strides{op.stride, op.stride}, window{op.kernel, op.kernel},
            padding{op.padding, op.padding};
        constexpr auto kMaximum = dnnl::algorithm::pooling_max;
        const auto kind = mode_ == Mode::training ? dnnl::prop_kind::forward_training
                                                  : dnnl::prop_kind::forward_inference;
        const PoolForward::primitive_desc plan(
            {kind, kMaximum, source, target, strides, window, padding, padding},
            caller_scratchpad(), context.engine);
        forward_ = Primitive(PoolForward(plan), plan.scratchpad_desc(), context);
        forward_.add(DNNL_ARG_SRC, source, context);
        forward_.add(DNNL_ARG_DST, target, context);
        if (mode_ == Mode::inference) return;
        // oneDNN's workspace holds the place of each window's maximum.
        winner_bytes_ = plan.workspace_desc().get_size();
        forward_.add(DNNL_ARG_WORKSPACE, plan.workspace_desc(), context);
        const PoolBackward::primitive_desc backward(
            {kMaximum, source, target, strides, window, padding, padding}, caller_scratchpad(),
            context.engine, plan);
        backward_ = Primitive(PoolBackward(backward), backward.scratchpad_desc(), context);
        backward_.add(DNNL_ARG_DIFF_DST, target, context);
        backward_.add(DNNL_ARG_DIFF_SRC, source, context);
        backward_.add(DNNL_ARG_WORKSPACE, plan.workspace_desc(), context);
    }

    KernelMemory memory() const override {
        return {winner_bytes_, 0,
                std::max(forward_.scratchpad_bytes(), backward_.scratchpad_bytes())};
    }
    std::vector<ops::Pass> passes() const override {
        if (mode_ == Mode::inference) return {ops::Pass::forward};
        return {ops::Pass::forward, ops::Pass::input_gradient};
    }

    void bind(const KernelTensors& tensors) override {
        forward_.set(DNNL_ARG_SRC, tensors.inputs[0]);
        forward_.set(DNNL_ARG_DST, tensors.output);
        forward_.set_scratchpad(tensors.workspace);
        if (mode_ == Mode::inference) return;
        forward_.set(DNNL_ARG_WORKSPACE, tensors.saved);
        backward_.set(DNNL_ARG_WORKSPACE, tensors.saved);
        backward_.set(DNNL_ARG_DIFF_DST, tensors.output_gradients[0]);
        backward_.set(DNNL_ARG_DIFF_SRC, tensors.input_gradients[0]);
        backward_.set_scratchpad(tensors.workspace);
    }

    void run(ops::Pass pass) override {
        (pass == ops::Pass::forward ? forward_ : backward_).run(context_);
    }

private:
    const Context& context_;
    Mode mode_;
    Primitive forward_, backward_;
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

    const Loops& loops_;
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
