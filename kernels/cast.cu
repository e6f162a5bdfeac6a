// SPDX-License-Identifier: Apache-2.0
#include "cast.hpp"
#include "elements.cuh"

namespace hpcai::kernels {
namespace {

template <typename From, typename To>
__global__ void cast_kernel(const From* from, To* to, std::int64_t count) {
    constexpr int N = kLanes<__half>;  // whole 16-byte accesses for every type
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

// This is only for filters of a first layer and small images: one element a thread is fast enough.
template <typename T>
__global__ void pad_kernel(PaddedRows shape, const float* from, T* to) {
    const std::int64_t elements = shape.rows * shape.padded_channels;
    for (std::int64_t at = first_item(); at < elements; at += item_stride()) {
        const std::int64_t row = at / shape.padded_channels;
        const auto channel = static_cast<int>(at - row * shape.padded_channels);
        const bool real = channel < shape.channels;
        to[at] = from_float<T>(real ? from[row * shape.channels + channel] : 0.0f);
    }
}

template <typename T>
__global__ void strip_kernel(PaddedRows shape, const T* from, float* to) {
    const std::int64_t elements = shape.rows * shape.channels;
    for (std::int64_t at = first_item(); at < elements; at += item_stride()) {
        const std::int64_t row = at / shape.channels;
        const auto channel = static_cast<int>(at - row * shape.channels);
        to[at] = to_float(from[row * shape.padded_channels + channel]);
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
        launch(pad_kernel<T>, grid_over(shape.rows * shape.padded_channels, stream), shape, from,
               static_cast<T*>(to));
    });
}

void strip_channels(const PaddedRows& shape, const void* from, float* to, Stream stream) {
    with_type(shape.dtype, [&]<typename T>() {
        launch(strip_kernel<T>, grid_over(shape.rows * shape.channels, stream), shape,
               static_cast<const T*>(from), to);
    });
}

}  // namespace hpcai::kernels
