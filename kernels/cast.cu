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
        const auto channel = static_cast<int>(at % shape.padded_channels);
        const std::int64_t pixel = at / shape.padded_channels, row = pixel / shape.padded_columns;
        const int column = static_cast<int>(pixel % shape.padded_columns) - shape.first_column;
        const bool is_inside = channel < shape.channels && column >= 0 && column < shape.columns;
        const std::int64_t source = (row * shape.columns + column) * shape.channels + channel;
        to[at] = from_float<T>(is_inside ? from[source] : 0.0f);
    }
}

template <typename T>
__global__ void strip_kernel(PaddedRows shape, const T* from, float* to) {
    const std::int64_t elements = shape.rows * shape.columns * shape.channels;
    for (std::int64_t at = first_item(); at < elements; at += item_stride()) {
        const auto channel = static_cast<int>(at % shape.channels);
        const std::int64_t pixel = at / shape.channels, row = pixel / shape.columns;
        const std::int64_t column = pixel % shape.columns + shape.first_column;
        to[at] =
            to_float(from[(row * shape.padded_columns + column) * shape.padded_channels + channel]);
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
        launch(strip_kernel<T>, grid_over(shape.rows * shape.columns * shape.channels, stream),
               shape, static_cast<const T*>(from), to);
    });
}

}  // namespace hpcai::kernels
