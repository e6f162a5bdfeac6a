// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include <dnnl.hpp>

#include <hpcai/device/cpu_device.hpp>
#include <hpcai/device/operation_kernel.hpp>

#include "loops/loops.hpp"

namespace hpcai::device::cpu {

using tensor::DType;
using tensor::Shape;

/// Where the elements of a value lie. An (N, H, W, C) image is in blocks of `channel_block`
/// channels where C is a multiple of it, else channels last; with `planar_input_images`, images of
/// at most three channels lie plane by plane.
struct Layouts {
    int channel_block = 16;            // 0: always channels last
    bool planar_input_images = false;  // (N, C, H, W) for C <= 3
};

/// What every CPU kernel is built from; lives as long as its device.
struct Context {
    dnnl::engine engine;
    dnnl::stream stream;
    Layouts layouts;
    const SimdKernels* loops = nullptr;
    bool is_deterministic = false;
};

dnnl::memory::data_type dnnl_type(DType dtype);

/// oneDNN's description of a value: (N, H, W, C), (N, C) or (C) in this engine's layout.
dnnl::memory::desc value_desc(const Layouts& layouts, const Shape& shape, DType dtype);

/// Whether oneDNN has more than reference loops, a thousand times slower, for convolutions between
/// images in the engine's layout.
bool suits_convolutions(const Layouts& layouts, const Shape& source, const Shape& target,
                        bool needs_input_gradient);

/// How a kernel's loops walk an image value: `images` x `tiles` tiles of `tile.lanes` channels.
struct TileGrid {
    Tile tile;
    std::int64_t images = 0;
    std::int64_t tiles = 0;         // an image
    std::int64_t image_stride = 0;  // elements
    std::int64_t tile_stride = 0;   // elements

    /// Address of the first element of a tile.
    const void* at(const void* base, std::int64_t image, std::int64_t index) const;
    void* at(void* base, std::int64_t image, std::int64_t index) const;

    /// Calls body(image, tile) for every tile, in parallel.
    template <typename Body>
    void for_each(const Body& body) const {
#pragma omp parallel for collapse(2) schedule(static)
        for (std::int64_t image = 0; image < images; ++image) {
            for (std::int64_t tile_index = 0; tile_index < tiles; ++tile_index) {
                body(image, tile_index);
            }
        }
    }
};
TileGrid tile_grid(const Layouts& layouts, const Shape& shape, DType dtype);

/// The layouts oneDNN itself picks for a 3x3 and a first convolution in `dtype`.
Layouts choose_layouts(const dnnl::engine& engine, CpuLayout wish);

/// A oneDNN primitive with its memory objects, ready to run. Addresses are set before each use of
/// the shared ones.
class Primitive {
public:
    Primitive() = default;
    Primitive(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad,
              const Context& context);
    /// Names an argument (DNNL_ARG_...); its address comes with set().
    void add(int argument, const dnnl::memory::desc& desc, const Context& context);
    void set(int argument, void* address);
    void set_scratchpad(void* address) { set(DNNL_ARG_SCRATCHPAD, address); }
    std::size_t scratchpad_bytes() const;
    void run(const Context& context) const;

private:
    dnnl::primitive primitive_;
    std::unordered_map<int, dnnl::memory> arguments_;
};

/// Copies between layouts and types; nothing at all when both descriptions are equal.
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

/// Attributes with a scratchpad given by the caller, so that running allocates nothing.
dnnl::primitive_attr caller_scratchpad();

/// For build_kernel(). Throws Error(internal) for an operation that this engine does not compute.
std::unique_ptr<Kernel> build(const ops::InputNormalize&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::Convolution&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::BatchNorm&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::NormConvolution&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::DualNorm&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::GroupNorm&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::Bias&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::UpsampleAdd&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::Relu&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::Add&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::MaxPool&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::GlobalAveragePool&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::Linear&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::SoftmaxCrossEntropy&, const KernelOptions&,
                              const Context&);
std::unique_ptr<Kernel> build(const ops::AnchorTargets&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::RpnLoss&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::Proposals&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::RoiTargets&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::RoiAlign&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::RoiLoss&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::Detections&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::CellCrossEntropy&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::AllGather&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::ReduceScatter&, const KernelOptions&, const Context&);
/// For a frozen one.
std::unique_ptr<Kernel> build_frozen_norm(const ops::BatchNorm&, const KernelOptions&,
                                          const Context&);

/// Throws Error(internal).
[[noreturn]] void refuse(const ops::Operation& operation);

}  // namespace hpcai::device::cpu
