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

// Threads handle single elements, because only first-layer filters and small images are padded.
template <typename T>
__global__ void pad_kernel(PaddedRows shape, std::int64_t elements, const float* from, T* to) {
    for (std::int64_t at = first_item(); at < elements; at += item_stride()) {
        const std::int64_t row = at / shape.padded_channels;
        const auto channel = static_cast<int>(at - row * shape.padded_channels);
        const bool is_inside = channel < shape.channels;
        to[at] = from_float<T>(is_inside ? from[row * shape.channels + channel] : 0.0f);
    }
}

template <typename T>
__global__ void strip_kernel(PaddedRows shape, const T* from, float* to) {
    const std::int64_t elements = shape.rows * shape.channels;
    for (std::int64_t at = first_item(); at < elements; at += item_stride()) {
        const std::int64_t row = at / shape.channels;
        to[at] = to_float(from[row * shape.padded_channels + (at - row * shape.channels)]);
    }
}

/// BlockedImages with the results of its host functions, which kernels cannot call.
struct Blocks : BlockedImages {
    int rows, columns;

    explicit Blocks(const BlockedImages& images)
        : BlockedImages(images), rows(images.block_rows()), columns(images.block_columns()) {}

    /// Returns the index in all images of pixel `at` of block row `row`; -1 outside of the image.
    /// Block rows are numbered over all images. A block has 4 pixels.
    __device__ std::int64_t pixel(std::int64_t row, int at) const {
        const std::int64_t image = row / rows;
        const int y = 2 * static_cast<int>(row - image * rows) - border + at % 4 / 2;
        const int x = 2 * (at / 4) - border + at % 2;
        if (y < 0 || y >= height || x < 0 || x >= width) return -1;
        return (image * height + y) * width + x;
    }
    /// Returns the index in the fp32 filters of element `at` of the blocks; -1 for padding.
    __device__ std::int64_t tap(std::int64_t at) const {
        const std::int64_t place = at / padded_channels, row = place / (4 * columns);
        const auto channel = static_cast<int>(at - place * padded_channels);
        const std::int64_t index = pixel(row, static_cast<int>(place - row * 4 * columns));
        return index < 0 || channel >= channels ? -1 : index * channels + channel;
    }
};

constexpr int kBlockLanes = 4;  // channels that a thread copies in one access

/// Each thread block copies whole rows of pixel blocks.
template <typename T>
__global__ void to_blocks_kernel(Blocks blocks, const T* from, T* to) {
    struct alignas(kBlockLanes * sizeof(T)) Lanes {
        T element[kBlockLanes];
    };
    const auto* pixels = reinterpret_cast<const Lanes*>(from);
    const int pixel_lanes = blocks.padded_channels / kBlockLanes;  // accesses for one pixel
    const int row_lanes = 4 * blocks.columns * pixel_lanes;
    for (std::int64_t row = blockIdx.x; row < blocks.images * blocks.rows; row += gridDim.x) {
        Lanes* target = reinterpret_cast<Lanes*>(to) + row * row_lanes;
        const auto stride = static_cast<int>(blockDim.x);
        for (int first = static_cast<int>(threadIdx.x); first < row_lanes; first += 2 * stride) {
            Lanes lanes[2] = {};  // both loads are in flight before the first store
            for (int i = 0; i < 2; ++i) {
                const int at = first + i * stride, place = at / pixel_lanes;
                const std::int64_t pixel = at < row_lanes ? blocks.pixel(row, place) : -1;
                if (pixel >= 0) lanes[i] = pixels[pixel * pixel_lanes + at - place * pixel_lanes];
            }
            for (int i = 0; i < 2; ++i) {
                if (first + i * stride < row_lanes) target[first + i * stride] = lanes[i];
            }
        }
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

void cast_from_f32(const float* from, tensor::DType dtype, void* to, std::int64_t count,
                   Stream stream) {
    with_type(dtype, [&]<typename T>() { cast(from, static_cast<T*>(to), count, stream); });
}

void cast_to_f32(tensor::DType dtype, const void* from, float* to, std::int64_t count,
                 Stream stream) {
    with_type(dtype, [&]<typename T>() { cast(static_cast<const T*>(from), to, count, stream); });
}

void pad_channels(const PaddedRows& shape, const float* from, void* to, Stream stream) {
    with_type(shape.dtype, [&]<typename T>() {
        const std::int64_t elements = shape.padded_elements();
        launch(pad_kernel<T>, grid_over(elements, stream), shape, elements, from,
               static_cast<T*>(to));
    });
}

void strip_channels(const PaddedRows& shape, const void* from, float* to, Stream stream) {
    with_type(shape.dtype, [&]<typename T>() {
        launch(strip_kernel<T>, grid_over(shape.rows * shape.channels, stream), shape,
               static_cast<const T*>(from), to);
    });
}

void to_blocks(const BlockedImages& shape, const void* from, void* to, Stream stream) {
    if (shape.padded_channels % kBlockLanes != 0)
        fail("to_blocks: expected multiples of 4 channels");
    with_type(shape.dtype, [&]<typename T>() {
        launch(to_blocks_kernel<T>, grid_over(shape.elements() / kBlockLanes, stream),
               Blocks(shape), static_cast<const T*>(from), static_cast<T*>(to));
    });
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
