// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>

#include <dnnl.hpp>

#include <hpcai/device/cpu_device.hpp>
#include <hpcai/device/operation_kernel.hpp>

#include "loops/loops.hpp"

namespace hpcai::device::cpu {

/// True for oneDNN 2, whose plans are made from a desc; oneDNN 3 takes the desc's arguments.
template <typename Primitive>
concept HasDescription = requires {
    typename Primitive::desc;
};

/// Attributes for a scratchpad that the caller provides, so that running allocates none.
inline dnnl::primitive_attr caller_scratchpad() {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attributes;
}

/// Returns the plan (primitive_desc) of a forward pass whose caller provides a scratchpad. `parts`
/// are the arguments of oneDNN 3 between engine and attributes. Throws dnnl::error on failure.
template <typename Forward, typename... Parts>
auto plan_forward_pass(const dnnl::engine& engine, const Parts&... parts) {
    using Plan = typename Forward::primitive_desc;
    if constexpr (HasDescription<Forward>) {
        return Plan(typename Forward::desc(parts...), caller_scratchpad(), engine);
    } else {
        return Plan(engine, parts..., caller_scratchpad());
    }
}

/// As plan_forward_pass, for a backward pass; `forward` is the plan of its forward pass.
template <typename Backward, typename ForwardPlan, typename... Parts>
auto plan_backward_pass(const dnnl::engine& engine, const ForwardPlan& forward,
                        const Parts&... parts) {
    using Plan = typename Backward::primitive_desc;
    if constexpr (HasDescription<Backward>) {
        return Plan(typename Backward::desc(parts...), caller_scratchpad(), engine, forward);
    } else {
        return Plan(engine, parts..., forward, caller_scratchpad());
    }
}

/// Returns the dimensions of a memory::desc of oneDNN 2 or 3.
dnnl::memory::dims dims_of(const auto& desc) {
    if constexpr (requires { desc.get_dims(); }) {
        return desc.get_dims();
    } else {
        return desc.dims();
    }
}

using tensor::DType;
using tensor::Shape;

/// The memory layout of values. An (N, H, W, C) image is stored in blocks of `channel_block`
/// channels if C is a multiple of this number, else channels last. With `planar_input_images`,
/// images of at most three channels are stored as (N, C, H, W).
struct Layouts {
    int channel_block = 16;            // 0: always channels last
    bool planar_input_images = false;  // see above
};

/// Arguments for building every CPU kernel. They live as long as the device.
struct Context {
    dnnl::engine engine;
    dnnl::stream stream;
    Layouts layouts;
    const SimdKernels* loops = nullptr;
    bool is_deterministic = false;
};

dnnl::memory::data_type dnnl_type(DType dtype);

/// Returns oneDNN's description of a value (N, H, W, C), (N, C) or (C) in `layouts`.
dnnl::memory::desc value_desc(const Layouts& layouts, const Shape& shape, DType dtype);

/// Returns whether oneDNN has optimized convolutions from `source` to `target` in `layouts`.
bool is_fast_layout(const Layouts& layouts, const Shape& source, const Shape& target,
                    bool needs_input_gradient);

/// Identifies a tile (see Tile) of a batch of images.
struct TileIndex {
    std::int64_t image = 0;
    std::int64_t tile = 0;     // in the image
    std::int64_t channel = 0;  // the first one
};

/// Divides a batch of images into `images` x `tiles` tiles of `tile.lanes` channels.
struct TileGrid {
    Tile tile;
    std::int64_t images = 0;
    std::int64_t tiles = 0;         // of an image
    std::int64_t image_stride = 0;  // elements
    std::int64_t tile_stride = 0;   // elements

    /// Returns the address of the first element of a tile; null if `base` is null.
    void* at(void* base, std::int64_t image, std::int64_t tile_index) const;
    void* at(void* base, const TileIndex& index) const { return at(base, index.image, index.tile); }

    /// Calls body(index) for every TileIndex, in parallel.
    void for_each(const auto& body) const {
#pragma omp parallel for collapse(2) schedule(static)
        for (std::int64_t image = 0; image < images; ++image) {
            for (std::int64_t tile_index = 0; tile_index < tiles; ++tile_index) {
                body(TileIndex{image, tile_index, tile_index * tile.lanes});
            }
        }
    }
};
TileGrid tile_grid(const Layouts& layouts, const Shape& shape, DType dtype);

/// Returns the layouts that oneDNN prefers for 3x3 convolutions and for a network's first
/// convolution, as far as `requested` allows.
Layouts choose_layouts(const dnnl::engine& engine, CpuLayout requested);

/// A oneDNN primitive with its memory objects.
class Primitive {
public:
    Primitive() = default;
    Primitive(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad,
              const Context& context);
    /// Adds an argument (DNNL_ARG_...); set() sets its address.
    void add(int argument, const dnnl::memory::desc& desc, const Context& context);
    void set(int argument, void* address) { arguments_.at(argument).set_data_handle(address); }
    void set_scratchpad(void* address) { set(DNNL_ARG_SCRATCHPAD, address); }
    std::size_t scratchpad_bytes() const;
    void run(const Context& context) const { primitive_.execute(context.stream, arguments_); }

private:
    dnnl::primitive primitive_;
    std::unordered_map<int, dnnl::memory> arguments_;
};

/// Copies between layouts and types; does nothing when both descriptions are equal.
class Reorder {
public:
    Reorder() = default;
    Reorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to, const Context& context);
    void set(void* from, void* to);
    void run(const Context& context) const;

private:
    dnnl::reorder primitive_;
    dnnl::memory from_, to_;
    bool needed_ = false;
};

/// Builds the kernel of a BatchNorm with `frozen`; called by build().
KernelPtr build_frozen_norm(const ops::BatchNorm&, const KernelOptions&, const Context&);

/// Throws Error(internal): the engine does not compute this operation.
[[noreturn]] void throw_unsupported(const ops::Operation& operation);

/// See Device::build.
std::unique_ptr<Update> build_update(const Optimizer& optimizer, const OptimizerTensors& tensors,
                                     const Context& context);

}  // namespace hpcai::device::cpu
