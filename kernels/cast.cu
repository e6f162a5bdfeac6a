// SPDX-License-Identifier: Apache-2.0
#include "cast.hpp"
#include "elements.cuh"

namespace hpcai::kernels {
namespace {

template <typename From, typename To>
__global__ void cast_kernel(const From* from, To* to, std::int64_t count) {
    constexpr int N = kLanes<__half>;  // full 16-byte accesses for every type
    constexpr int kInFlight = 2;
    const std::int64_t packs = count / N, stride = item_stride();
    for (std::int64_t first = first_item(); first < packs; first += kInFlight * stride) {
        Pack<N> pack[kInFlight];
        for (int part = 0; part < kInFlight; ++part) {
            const std::int64_t at = first + part * stride;
            if (at < packs) pack[part] = load<N>(from + at * N);
        }
        for (int part = 0; part < kInFlight; ++part) {
            const std::int64_t at = first + part * stride;
            if (at < packs) store(to + at * N, pack[part]);
        }
    }
    for (std::int64_t at = packs * N + first_item(); at < count; at += stride) {
        to[at] = from_float<To>(to_float(from[at]));
    }
}

template <typename From, typename To>
void cast(const From* from, To* to, std::int64_t count, Stream stream) {
    launch(cast_kernel<From, To>, grid_over(count / kLanes<__half>, stream), from, to, count);
}

template <typename Body>
void with_types(tensor::DType from, tensor::DType to, const Body& body) {
    with_type(from, [&]<typename From>() {
        with_type(to, [&]<typename To>() { body.template operator()<From, To>(); });
    });
}

// Threads handle single elements, because only first-layer filters and small images are padded.
template <typename From, typename To>
__global__ void pad_kernel(PaddedRows shape, std::int64_t elements, const From* from, To* to) {
    for (std::int64_t at = first_item(); at < elements; at += item_stride()) {
        const std::int64_t row = at / shape.padded_channels;
        const auto channel = static_cast<int>(at - row * shape.padded_channels);
        const bool is_inside = channel < shape.channels;
        to[at] = from_float<To>(is_inside ? to_float(from[row * shape.channels + channel]) : 0.0f);
    }
}

template <typename From, typename To>
__global__ void strip_kernel(PaddedRows shape, const From* from, To* to) {
    const std::int64_t elements = shape.rows * shape.channels;
    for (std::int64_t at = first_item(); at < elements; at += item_stride()) {
        const std::int64_t row = at / shape.channels;
        const std::int64_t padded = row * shape.padded_channels + (at - row * shape.channels);
        to[at] = from_float<To>(to_float(from[padded]));
    }
}

/// BlockedImages with the results of its host functions, which kernels cannot call.
struct Blocks : BlockedImages {
    int rows, stored_columns, offset;

    explicit Blocks(const BlockedImages& shape)
        : BlockedImages(shape),
          rows(shape.block_rows()),
          stored_columns(shape.columns()),
          offset(shape.first_offset()) {}

    /// Returns the index in all images of pixel `at` (0 to 3) of block (row, column); -1 outside of
    /// the image. Block rows are numbered over all images.
    __device__ std::int64_t pixel(std::int64_t row, int column, int at) const {
        const std::int64_t image = row / rows;
        const int y = 2 * static_cast<int>(row - image * rows) - border + at / 2;
        const int x = 2 * column - border + at % 2;
        if (y < 0 || y >= height || x < 0 || x >= width) return -1;
        return (image * height + y) * width + x;
    }
    /// Returns the index in the fp32 filters of element `at` of the blocks; -1 for padding.
    __device__ std::int64_t tap(std::int64_t at) const {
        const std::int64_t place = at / padded_channels, row = place / (4 * stored_columns);
        const auto channel = static_cast<int>(at - place * padded_channels);
        const auto in_row = static_cast<int>(place - row * 4 * stored_columns);
        const std::int64_t index = pixel(row, in_row / 4, in_row % 4);
        return index < 0 || channel >= channels ? -1 : index * channels + channel;
    }
};

constexpr int kTileColumns = 64;
constexpr int kMaxColumnBytes = 256;

/// A thread block collects the blocks of up to kTileColumns columns of one row in shared memory,
/// because adjacent columns have common blocks. A pixel has `units` x 8 bytes, a chunk 16 bytes.
__global__ void to_blocks_kernel(Blocks blocks, int units, const uint2* from, uint4* to) {
    __shared__ uint4 tile[(kTileColumns + 1) * kMaxColumnBytes / sizeof(uint4)];
    auto* tile_units = reinterpret_cast<uint2*>(tile);
    const int block_chunks = 2 * units, column_chunks = blocks.adjacent * block_chunks;
    const int tiles = (blocks.stored_columns + kTileColumns - 1) / kTileColumns;
    const auto thread = static_cast<int>(threadIdx.x), stride = static_cast<int>(blockDim.x);
    for (std::int64_t item = blockIdx.x; item < blocks.images * blocks.rows * tiles;
         item += gridDim.x) {
        const std::int64_t row = item / tiles;
        const int first = static_cast<int>(item - row * tiles) * kTileColumns;
        const int rest = blocks.stored_columns - first;
        const int columns = rest < kTileColumns ? rest : kTileColumns;
        for (int at = thread; at < (columns + blocks.adjacent - 1) * 4 * units; at += stride) {
            const int place = at / units;
            const std::int64_t pixel =
                blocks.pixel(row, first - blocks.offset + place / 4, place % 4);
            tile_units[at] = pixel < 0 ? uint2{} : from[pixel * units + at - place * units];
        }
        __syncthreads();
        uint4* target = to + (row * blocks.stored_columns + first) * column_chunks;
        for (int at = thread; at < columns * column_chunks; at += stride) {
            target[at] = tile[at / column_chunks * block_chunks + at % column_chunks];
        }
        __syncthreads();
    }
}

template <typename T>
__global__ void filters_to_blocks_kernel(Blocks blocks, std::int64_t elements, const float* from,
                                         T* to) {
    for (std::int64_t at = first_item(); at < elements; at += item_stride()) {
        const std::int64_t source = blocks.tap(at);
        to[at] = from_float<T>(source < 0 ? 0.0f : from[source]);
    }
}

template <typename T>
__global__ void filters_from_blocks_kernel(Blocks blocks, std::int64_t elements, const T* from,
                                           float* to) {
    for (std::int64_t at = first_item(); at < elements; at += item_stride()) {
        const std::int64_t target = blocks.tap(at);
        if (target >= 0) to[target] = to_float(from[at]);
    }
}

}  // namespace

void pad_rows(const PaddedRows& shape, tensor::DType from_dtype, const void* from, void* to,
              Stream stream) {
    if (shape.channels < 1 || shape.padded_channels < shape.channels) {
        fail("pad_rows: expected 1 <= channels <= padded_channels");
    }
    const std::int64_t elements = shape.padded_elements();
    with_types(from_dtype, shape.dtype, [&]<typename From, typename To>() {
        const auto* source = static_cast<const From*>(from);
        auto* target = static_cast<To*>(to);
        if (shape.channels == shape.padded_channels) return cast(source, target, elements, stream);
        launch(pad_kernel<From, To>, grid_over(elements, stream), shape, elements, source, target);
    });
}

void strip_rows(const PaddedRows& shape, const void* from, tensor::DType to_dtype, void* to,
                Stream stream) {
    const std::int64_t elements = shape.rows * shape.channels;
    with_types(shape.dtype, to_dtype, [&]<typename From, typename To>() {
        const auto* source = static_cast<const From*>(from);
        auto* target = static_cast<To*>(to);
        if (shape.channels == shape.padded_channels) return cast(source, target, elements, stream);
        launch(strip_kernel<From, To>, grid_over(elements, stream), shape, source, target);
    });
}

void to_blocks(const BlockedImages& shape, const void* from, void* to, Stream stream) {
    const int pixel_bytes = shape.padded_channels * static_cast<int>(size_of(shape.dtype));
    if (pixel_bytes % 8 != 0 || shape.adjacent * 4 * pixel_bytes > kMaxColumnBytes)
        fail("to_blocks: expected pixels of 8-byte units and columns of at most 256 bytes");
    const std::int64_t rows = shape.images * shape.block_rows();
    launch(to_blocks_kernel, grid_over(rows * shape.columns(), stream), Blocks(shape),
           pixel_bytes / 8, static_cast<const uint2*>(from), static_cast<uint4*>(to));
}

void filters_to_blocks(const BlockedImages& shape, const float* from, void* to, Stream stream) {
    with_type(shape.dtype, [&]<typename T>() {
        launch(filters_to_blocks_kernel<T>, grid_over(shape.elements(), stream), Blocks(shape),
               shape.elements(), from, static_cast<T*>(to));
    });
}

void filters_from_blocks(const BlockedImages& shape, const void* from, float* to, Stream stream) {
    with_type(shape.dtype, [&]<typename T>() {
        launch(filters_from_blocks_kernel<T>, grid_over(shape.elements(), stream), Blocks(shape),
               shape.elements(), static_cast<const T*>(from), to);
    });
}

}  // namespace hpcai::kernels
