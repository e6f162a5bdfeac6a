// SPDX-License-Identifier: Apache-2.0
#include "elements.cuh"
#include "reduce.cuh"
#include "wire_format.hpp"

namespace hpcai::kernels {
namespace {

constexpr std::int64_t kBlock = tensor::kWireBlock;
constexpr int kPerLane = static_cast<int>(kBlock / kWarp);
constexpr unsigned kInfinity = 0x7f800000u;  // bits of +infinity

__device__ inline unsigned magnitude(float value) {
    return __float_as_uint(value) & 0x7fffffffu;
}
__device__ inline bool is_finite(float value) {
    return magnitude(value) < kInfinity;
}

// src/comm/wire_format.cpp explains the constants and the rounding. As on the CPU, products are
// rounded before they are added (__fmul_rn); otherwise nvcc contracts product and sum.

template <typename T>
struct Unscaled {
    using Stored = T;
    static constexpr bool kIsScaled = false;
    __device__ static float decoding_scale_for(unsigned) { return 1; }
    __device__ static float encoding_scale_for(unsigned) { return 1; }
    __device__ static Stored pack(float value, float) { return from_float<T>(value); }
    __device__ static float unpack(Stored stored, float) { return to_float(stored); }
};

struct Fp16 {
    using Stored = __half;
    static constexpr bool kIsScaled = true;
    __device__ static unsigned exponent_of(unsigned largest) {
        return largest >> 23 > 15u ? largest >> 23 : 15u;
    }
    __device__ static float decoding_scale_for(unsigned largest) {
        return __uint_as_float((exponent_of(largest) - 14) << 23);
    }
    __device__ static float encoding_scale_for(unsigned largest) {
        return __uint_as_float((268 - exponent_of(largest)) << 23);
    }
    __device__ static Stored pack(float value, float encoding_scale) {
        return from_float<__half>(__fmul_rn(value, encoding_scale));
    }
    __device__ static float unpack(Stored stored, float scale) {
        return __fmul_rn(to_float(stored), scale);
    }
};

struct Int8 {
    using Stored = std::int8_t;
    static constexpr bool kIsScaled = true;
    static constexpr Stored kNotFinite = -128;        // decoded as +infinity
    static constexpr float kSmallestScaled = 1e-35f;  // blocks of smaller values are sent as 0

    __device__ static float decoding_scale_for(unsigned largest) {
        const float value = __uint_as_float(largest);
        return value < kSmallestScaled ? 0 : value / 127.0f;
    }
    __device__ static float encoding_scale_for(unsigned largest) {
        const float value = __uint_as_float(largest);
        return value < kSmallestScaled ? 0 : 127.0f / value;
    }
    __device__ static Stored pack(float value, float encoding_scale) {
        if (!is_finite(value)) return kNotFinite;
        return static_cast<Stored>(rintf(__fmul_rn(value, encoding_scale)));
    }
    __device__ static float unpack(Stored stored, float scale) {
        if (stored == kNotFinite) return __uint_as_float(kInfinity);
        return __fmul_rn(static_cast<float>(stored), scale);
    }
};

template <typename Body>
void with_format(tensor::WireFormat format, const Body& body) {
    switch (format) {
        case tensor::WireFormat::fp32:
            return body.template operator()<Unscaled<float>>();
        case tensor::WireFormat::bf16:
            return body.template operator()<Unscaled<__nv_bfloat16>>();
        case tensor::WireFormat::fp16:
            return body.template operator()<Fp16>();
        case tensor::WireFormat::int8:
            return body.template operator()<Int8>();
    }
}

/// The scales follow the values, at the next multiple of 4 bytes.
template <typename Format>
std::int64_t scales_offset(std::int64_t count) {
    const auto bytes = count * static_cast<std::int64_t>(sizeof(typename Format::Stored));
    return divide_up(bytes, 4) * 4;
}

/// Each warp takes one block of values at a time.
template <typename Format>
__global__ void encode_kernel(const float* values, float* residual, std::int64_t count,
                              typename Format::Stored* stored, float* scales) {
    const std::int64_t warps = item_stride() / kWarp;
    const unsigned lane = threadIdx.x % kWarp;
    for (std::int64_t block = first_item() / kWarp; block * kBlock < count; block += warps) {
        float exact[kPerLane];
        unsigned largest = 0;
        for (int part = 0; part < kPerLane; ++part) {
            const std::int64_t at = block * kBlock + part * kWarp + lane;
            exact[part] = at < count ? values[at] : 0;
            if (residual != nullptr && at < count) exact[part] += residual[at];
            if (is_finite(exact[part])) largest = Maximum{}(largest, magnitude(exact[part]));
        }
        if (Format::kIsScaled) largest = reduce_warp(largest, Maximum{});
        const float encoding_scale = Format::encoding_scale_for(largest);
        const float scale = Format::decoding_scale_for(largest);
        for (int part = 0; part < kPerLane; ++part) {
            const std::int64_t at = block * kBlock + part * kWarp + lane;
            if (at >= count) continue;
            const typename Format::Stored packed = Format::pack(exact[part], encoding_scale);
            stored[at] = packed;
            if (residual == nullptr) continue;
            const float lost = exact[part] - Format::unpack(packed, scale);
            residual[at] = is_finite(lost) ? lost : 0;
        }
        if (Format::kIsScaled && lane == 0) scales[block] = scale;
    }
}

template <typename Format, bool kAdds>
__global__ void decode_kernel(const typename Format::Stored* stored, const float* scales,
                              float* values, std::int64_t count) {
    const std::int64_t stride = item_stride();
    for (std::int64_t at = first_item(); at < count; at += stride) {
        const float scale = Format::kIsScaled ? scales[at / kBlock] : 1;
        const float value = Format::unpack(stored[at], scale);
        values[at] = kAdds ? values[at] + value : value;
    }
}

template <bool kAdds>
void decode(tensor::WireFormat format, const std::byte* wire, std::span<float> values,
            Stream stream) {
    const std::int64_t count = std::ssize(values);
    if (count == 0) return;
    with_format(format, [&]<typename Format>() {
        const auto* stored = reinterpret_cast<const typename Format::Stored*>(wire);
        const auto* scales = reinterpret_cast<const float*>(wire + scales_offset<Format>(count));
        launch(decode_kernel<Format, kAdds>, grid_over(divide_up(count, 4), stream), stored, scales,
               values.data(), count);
    });
}

__global__ void mark_skipped_kernel(const float* values, std::int64_t count, int* is_skipped) {
    const std::int64_t stride = item_stride();
    bool all_finite = true;
    for (std::int64_t at = first_item(); at < count; at += stride) {
        all_finite = all_finite && is_finite(values[at]);
    }
    if (!all_finite) *is_skipped = 1;  // all writers write the same value
}

__global__ void clear_if_skipped_kernel(const int* is_skipped, float* residual,
                                        std::int64_t count) {
    if (*is_skipped == 0) return;
    const std::int64_t stride = item_stride();
    for (std::int64_t at = first_item(); at < count; at += stride) residual[at] = 0;
}

}  // namespace

void encode_for_wire(tensor::WireFormat format, std::span<const float> values, float* residual,
                     std::byte* wire, Stream stream) {
    const std::int64_t count = std::ssize(values);
    if (count == 0) return;
    with_format(format, [&]<typename Format>() {
        auto* stored = reinterpret_cast<typename Format::Stored*>(wire);
        auto* scales = reinterpret_cast<float*>(wire + scales_offset<Format>(count));
        launch(encode_kernel<Format>, grid_over(divide_up(count, kBlock) * kWarp, stream),
               values.data(), residual, count, stored, scales);
    });
}

void decode_from_wire(tensor::WireFormat format, const std::byte* wire, std::span<float> values,
                      Stream stream) {
    decode<false>(format, wire, values, stream);
}

void add_from_wire(tensor::WireFormat format, const std::byte* wire, std::span<float> values,
                   Stream stream) {
    decode<true>(format, wire, values, stream);
}

void mark_skipped_unless_finite(std::span<const float> values, int* is_skipped, Stream stream) {
    if (values.empty()) return;
    launch(mark_skipped_kernel, grid_over(divide_up(std::ssize(values), 4), stream), values.data(),
           std::ssize(values), is_skipped);
}

void clear_if_skipped(const int* is_skipped, std::span<float> residual, Stream stream) {
    if (residual.empty()) return;
    launch(clear_if_skipped_kernel, grid_over(divide_up(std::ssize(residual), 4), stream),
           is_skipped, residual.data(), std::ssize(residual));
}

}  // namespace hpcai::kernels
