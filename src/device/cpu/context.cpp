// SPDX-License-Identifier: Apache-2.0
#include "context.hpp"

#include <fmt/core.h>

#include <hpcai/base/error.hpp>

namespace hpcai::device::cpu {

using tag = dnnl::memory::format_tag;
using dnnl::memory;

memory::data_type dnnl_type(DType dtype) {
    using type = memory::data_type;
    constexpr std::array kTypes{type::f32, type::bf16, type::f16, type::u8, type::s32};
    return kTypes.at(static_cast<std::size_t>(dtype));
}

namespace {

constexpr std::int64_t kMaxPlanarChannels = 3;

bool is_blocked(const Layouts& layouts, std::int64_t channels) {
    return layouts.channel_block > 0 && channels % layouts.channel_block == 0;
}

bool is_planar(const Layouts& layouts, std::int64_t channels) {
    return layouts.planar_input_images && channels <= kMaxPlanarChannels;
}

tag image_tag(const Layouts& layouts, std::int64_t channels) {
    if (is_planar(layouts, channels)) return tag::nchw;
    if (!is_blocked(layouts, channels)) return tag::nhwc;
    return layouts.channel_block == 16 ? tag::nChw16c : tag::nChw8c;
}

/// Returns the layout that oneDNN chooses for operand `argument` of a typical convolution.
memory::desc preferred_desc(const dnnl::engine& engine, std::int64_t channels, std::int64_t kernel,
                            int argument) {
    const auto any = [](memory::dims dims) {
        return memory::desc(std::move(dims), memory::data_type::f32, tag::any);
    };
    const std::int64_t pad = kernel / 2;
    const memory::dims padding{pad, pad};
    const auto plan = plan_forward_pass<dnnl::convolution_forward>(
        engine, dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct,
        any({8, channels, 32, 32}), any({64, channels, kernel, kernel}), any({8, 64, 32, 32}),
        memory::dims{1, 1}, padding, padding);
    return plan.query_md(dnnl::query::exec_arg_md, argument);
}

}  // namespace

memory::desc value_desc(const Layouts& layouts, const Shape& shape, DType dtype) {
    if (shape.rank() == 1) return memory::desc({shape[0]}, dnnl_type(dtype), tag::x);
    if (shape.rank() == 2) {
        return memory::desc({shape[0], shape[1]}, dnnl_type(dtype), tag::nc);
    }
    ensure(shape.rank() == 4, "values need 1, 2 or 4 dimensions, not {}", to_string(shape));
    return memory::desc({shape[0], shape[3], shape[1], shape[2]}, dnnl_type(dtype),
                        image_tag(layouts, shape[3]));
}

bool is_fast_layout(const Layouts& layouts, const Shape& source, const Shape& target,
                    bool needs_input_gradient) {
    if (layouts.channel_block == 0) return true;
    const bool is_input_image = is_planar(layouts, source[3]) && !needs_input_gradient;
    return (is_input_image || is_blocked(layouts, source[3])) && is_blocked(layouts, target[3]);
}

TileGrid tile_grid(const Layouts& layouts, const Shape& shape, DType dtype) {
    const std::int64_t pixels = shape[1] * shape[2];
    const std::int64_t channels = shape[3];
    TileGrid grid{{pixels, channels, 1, dtype}, shape[0], channels, pixels * channels, 1};
    if (is_planar(layouts, channels)) {
        grid.tile.stride = 1;
        grid.tile_stride = pixels;
    } else if (is_blocked(layouts, channels)) {
        grid.tile.lanes = layouts.channel_block;
        grid.tile.stride = grid.tile.lanes;
        grid.tile_stride = pixels * grid.tile.lanes;
    } else if (channels % 8 == 0) {
        grid.tile.lanes = channels % 16 == 0 ? 16 : 8;
        grid.tile_stride = grid.tile.lanes;
    }
    grid.tiles = channels / grid.tile.lanes;
    return grid;
}

void* TileGrid::at(void* base, std::int64_t image, std::int64_t tile_index) const {
    if (base == nullptr) return nullptr;
    const std::int64_t element = image * image_stride + tile_index * tile_stride;
    return static_cast<std::byte*>(base) + static_cast<std::size_t>(element) * size_of(tile.dtype);
}

Layouts choose_layouts(const dnnl::engine& engine, CpuLayout requested) {
    if (requested == CpuLayout::channels_last) return {0, false};
    const auto is = [](const memory::desc& preferred, tag layout) {
        return preferred == memory::desc(dims_of(preferred), memory::data_type::f32, layout);
    };
    Layouts layouts;
    layouts.planar_input_images = is(preferred_desc(engine, 3, 7, DNNL_ARG_SRC), tag::nchw);
    const memory::desc preferred = preferred_desc(engine, 64, 3, DNNL_ARG_SRC);
    layouts.channel_block = is(preferred, tag::nChw16c) ? 16 : is(preferred, tag::nChw8c) ? 8 : 0;
    if (requested == CpuLayout::blocked && layouts.channel_block == 0) layouts.channel_block = 8;
    return layouts;
}

Primitive::Primitive(const dnnl::primitive& primitive, const memory::desc& scratchpad,
                     const Context& context)
    : primitive_(primitive) {
    add(DNNL_ARG_SCRATCHPAD, scratchpad, context);
}

void Primitive::add(int argument, const memory::desc& desc, const Context& context) {
    arguments_[argument] = memory(desc, context.engine, DNNL_MEMORY_NONE);
}

std::size_t Primitive::scratchpad_bytes() const {
    const auto found = arguments_.find(DNNL_ARG_SCRATCHPAD);
    return found == arguments_.end() ? 0 : found->second.get_desc().get_size();
}

Reorder::Reorder(const memory::desc& from, const memory::desc& to, const Context& context)
    : needed_(from != to) {
    if (!needed_) return;
    from_ = memory(from, context.engine, DNNL_MEMORY_NONE);
    to_ = memory(to, context.engine, DNNL_MEMORY_NONE);
    primitive_ = dnnl::reorder(from_, to_);
}

void Reorder::set(void* from, void* to) {
    if (!needed_) return;
    from_.set_data_handle(from);
    to_.set_data_handle(to);
}

void Reorder::run(const Context& context) const {
    if (!needed_) return;
    dnnl::memory from = from_, to = to_;
    primitive_.execute(context.stream, from, to);
}

void throw_unsupported(const ops::Operation& operation) {
    throw Error(ExitCode::internal,
                fmt::format("the CPU engine does not support this {}", ops::name_of(operation)));
}

KernelPtr build(const ops::DualNorm& op, const KernelOptions&, const Context&) {
    throw_unsupported(op);
}

KernelPtr build(const ops::PointwiseNorm& op, const KernelOptions&, const Context&) {
    throw_unsupported(op);
}

KernelPtr build(const ops::NormPool& op, const KernelOptions&, const Context&) {
    throw_unsupported(op);
}

}  // namespace hpcai::device::cpu
