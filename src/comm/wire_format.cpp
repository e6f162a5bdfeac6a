// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstring>

#include <hpcai/base/error.hpp>
#include <hpcai/base/rounding.hpp>
#include <hpcai/comm/wire_format.hpp>
#include <hpcai/tensor/half.hpp>

namespace hpcai::comm {
namespace {

constexpr std::int32_t kInfinity = 0x7f800000;  // bits of fp32
constexpr float kRounder = 12582912.0F;         // 1.5 * 2^23: adding it rounds to an integer
constexpr std::int8_t kNotFinite = -128;        // int8 code of a value that is not finite
// int8: a block whose maximum is smaller becomes 0, because 127 / maximum could overflow.
constexpr float kMinScaled = 1e-35F;

// Magnitudes are signed integers, and masks of all bits or no bits select values, so that compilers
// vectorize the loops for every instruction set. Conversions to fp16 use bit patterns of fp32:
// 0x38800000 is 2^-14, the smallest normal fp16. Subtracting 0x37fff001 = 0x38000000 - 0xfff sets
// the exponent bias of fp16 and adds 0xfff. Adding the lowest kept bit then rounds ties to even.

std::int32_t magnitude_bits(float value) {
    return std::bit_cast<std::int32_t>(value) & 0x7fffffff;
}

std::int32_t finite_mask(float value) {
    return -static_cast<std::int32_t>(magnitude_bits(value) < kInfinity);
}

/// Returns the bits of the largest finite magnitude in a block. Bits compare as magnitudes do.
std::uint32_t largest_finite(const float* values, std::size_t count) {
    std::int32_t largest = 0;
    for (std::size_t i = 0; i < count; ++i) {
        largest = std::max(largest, magnitude_bits(values[i]) & finite_mask(values[i]));
    }
    return static_cast<std::uint32_t>(largest);
}

struct Bf16 {
    using Stored = std::uint16_t;
    static constexpr bool kIsScaled = false;

    static float decoding_scale_for(std::uint32_t) { return 1; }
    static float encoding_scale_for(std::uint32_t) { return 1; }
    static Stored pack(float value, float) { return tensor::to_bf16(value); }
    static float unpack(Stored stored, float) { return tensor::from_bf16(stored); }
};

/// fp16 scaled by a power of two, so that only the rounding to fp16 is inexact.
struct Fp16 {
    using Stored = std::uint16_t;
    static constexpr bool kIsScaled = true;

    /// Returns the biased exponent of the values that encoding scales to 2^14: that of the largest
    /// value, but at least that of 2^-112, so that the decoding scale does not underflow.
    static std::uint32_t exponent_of(std::uint32_t largest) { return std::max(largest >> 23, 15u); }
    static float decoding_scale_for(std::uint32_t largest) {
        return std::bit_cast<float>((exponent_of(largest) - 14) << 23);
    }
    static float encoding_scale_for(std::uint32_t largest) {
        return std::bit_cast<float>((127 + 14 - (exponent_of(largest) - 127)) << 23);
    }
    /// Returns tensor::to_f16(value * encoding_scale), infinite only if `value` is not finite.
    static Stored pack(float value, float encoding_scale) {
        const auto bits = std::bit_cast<std::int32_t>(value * encoding_scale);
        const std::int32_t magnitude = bits & 0x7fffffff;
        // Adding 0.5 leaves the rounded bits of a subnormal result in the low bits of the sum.
        const std::int32_t subnormal =
            std::bit_cast<std::int32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000;
        const std::int32_t normal = (magnitude - 0x37fff001 + (magnitude >> 13 & 1)) >> 13;
        const std::int32_t special = 0x7c00 | (0x200 & -(magnitude > kInfinity));
        const std::int32_t is_subnormal = -(magnitude < 0x38800000);
        const std::int32_t is_special = -(magnitude >= kInfinity);
        const std::int32_t finite = (subnormal & is_subnormal) | (normal & ~is_subnormal);
        return static_cast<Stored>((finite & ~is_special) | (special & is_special) |
                                   (bits >> 16 & 0x8000));
    }
    static float unpack(Stored stored, float scale) { return tensor::from_f16(stored) * scale; }
};

struct Int8 {
    using Stored = std::int8_t;
    static constexpr bool kIsScaled = true;

    static float decoding_scale_for(std::uint32_t largest) {
        const auto value = std::bit_cast<float>(largest);
        return value < kMinScaled ? 0.0F : value / 127.0F;
    }
    static float encoding_scale_for(std::uint32_t largest) {
        const auto value = std::bit_cast<float>(largest);
        return value < kMinScaled ? 0.0F : 127.0F / value;
    }
    static Stored pack(float value, float encoding_scale) {
        const std::int32_t is_finite = finite_mask(value);
        const auto finite = std::bit_cast<float>(std::bit_cast<std::int32_t>(value) & is_finite);
        const std::int32_t nearest =
            std::bit_cast<std::int32_t>(finite * encoding_scale + kRounder) -
            std::bit_cast<std::int32_t>(kRounder);
        return static_cast<Stored>((nearest & is_finite) | (kNotFinite & ~is_finite));
    }
    static float unpack(Stored stored, float scale) {
        const auto finite = std::bit_cast<std::int32_t>(static_cast<float>(stored) * scale);
        const std::int32_t is_finite = -static_cast<std::int32_t>(stored != kNotFinite);
        return std::bit_cast<float>((finite & is_finite) | (kInfinity & ~is_finite));
    }
};

/// Returns the bytes of the encoded values, padded to a multiple of 4. The scales follow them.
std::size_t scales_offset(WireFormat format, std::size_t values) {
    constexpr std::array<std::size_t, 4> kValueBytes{4, 2, 2, 1};
    return align_up(values * kValueBytes.at(static_cast<std::size_t>(format)), 4);
}

void store_residual(float* residual, const float* wanted, const float* sent, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        const float lost = wanted[i] - sent[i];
        residual[i] = std::bit_cast<float>(std::bit_cast<std::int32_t>(lost) & finite_mask(lost));
    }
}

/// Encodes a block of at most kWireBlock values and returns its scale.
template <typename Format>
float pack_block(const float* values, typename Format::Stored* stored, std::size_t count) {
    const std::uint32_t largest = Format::kIsScaled ? largest_finite(values, count) : 0;
    const float encoding_scale = Format::encoding_scale_for(largest);
    for (std::size_t i = 0; i < count; ++i) stored[i] = Format::pack(values[i], encoding_scale);
    return Format::decoding_scale_for(largest);
}

template <typename Format>
void unpack_block(const typename Format::Stored* stored, float scale, float* values,
                  std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) values[i] = Format::unpack(stored[i], scale);
}

template <typename Format>
void encode_as(WireFormat format, std::span<const float> values, std::span<std::byte> wire,
               std::span<float> residual) {
    auto* stored = reinterpret_cast<typename Format::Stored*>(wire.data());
    std::byte* scales = wire.data() + scales_offset(format, values.size());
    float wanted[kWireBlock], sent[kWireBlock];
    for (std::size_t begin = 0; begin < values.size(); begin += kWireBlock) {
        const std::size_t count = std::min(values.size() - begin, kWireBlock);
        const float* from = values.data() + begin;
        if (!residual.empty()) {
            for (std::size_t i = 0; i < count; ++i) wanted[i] = from[i] + residual[begin + i];
            from = wanted;
        }
        const float scale = pack_block<Format>(from, stored + begin, count);
        if (Format::kIsScaled) {
            std::memcpy(scales + begin / kWireBlock * sizeof scale, &scale, sizeof scale);
        }
        if (residual.empty()) continue;
        unpack_block<Format>(stored + begin, scale, sent, count);
        store_residual(residual.data() + begin, from, sent, count);
    }
}

/// Calls `visit(index of first value, decoded values, number of values)` for each block.
template <typename Format, typename Visit>
void for_each_decoded(WireFormat format, std::span<const std::byte> wire, std::size_t values,
                      Visit visit) {
    const auto* stored = reinterpret_cast<const typename Format::Stored*>(wire.data());
    const std::byte* scales = wire.data() + scales_offset(format, values);
    float block[kWireBlock];
    for (std::size_t begin = 0; begin < values; begin += kWireBlock) {
        const std::size_t count = std::min(values - begin, kWireBlock);
        float scale = 1;
        if (Format::kIsScaled) {
            std::memcpy(&scale, scales + begin / kWireBlock * sizeof scale, sizeof scale);
        }
        unpack_block<Format>(stored + begin, scale, block, count);
        visit(begin, block, count);
    }
}

/// Calls `visit` with an object of the format's type. Does nothing for fp32, which has no type.
template <typename Visit>
void visit_format(WireFormat format, const Visit& visit) {
    switch (format) {
        case WireFormat::fp32:
            return;
        case WireFormat::bf16:
            return visit(Bf16());
        case WireFormat::fp16:
            return visit(Fp16());
        case WireFormat::int8:
            return visit(Int8());
    }
}

void check_sizes(WireFormat format, std::size_t values, std::size_t wire, std::size_t residual) {
    ensure(wire == wire_bytes(format, values), "{} bytes on the wire do not match {} values in {}",
           wire, values, name_of(format));
    ensure(residual == 0 || residual == values, "got {} residuals for {} values", residual, values);
}

/// As for_each_decoded(), for any format; fp32 values are one block.
template <typename Visit>
void visit_decoded(WireFormat format, std::span<const std::byte> wire, std::size_t values,
                   const Visit& visit) {
    check_sizes(format, values, wire.size(), 0);
    if (format == WireFormat::fp32) visit(0, reinterpret_cast<const float*>(wire.data()), values);
    visit_format(format, [&](auto packer) {
        for_each_decoded<decltype(packer)>(format, wire, values, visit);
    });
}

}  // namespace

std::string_view name_of(WireFormat format) {
    constexpr std::array kNames{"fp32", "bf16", "fp16", "int8"};
    return kNames.at(static_cast<std::size_t>(format));
}

std::size_t wire_bytes(WireFormat format, std::size_t values) {
    const bool has_scales = format == WireFormat::fp16 || format == WireFormat::int8;
    return scales_offset(format, values) +
           (has_scales ? sizeof(float) * ceil_div(values, kWireBlock) : 0);
}

void encode(WireFormat format, std::span<const float> values, std::span<std::byte> wire,
            std::span<float> residual) {
    check_sizes(format, values.size(), wire.size(), residual.size());
    if (format == WireFormat::fp32 && !values.empty()) {
        std::memcpy(wire.data(), values.data(), values.size_bytes());
    }
    visit_format(format,
                 [&](auto packer) { encode_as<decltype(packer)>(format, values, wire, residual); });
}

void decode(WireFormat format, std::span<const std::byte> wire, std::span<float> values) {
    visit_decoded(format, wire, values.size(),
                  [&](std::size_t begin, const float* block, std::size_t count) {
                      std::copy_n(block, count, values.data() + begin);
                  });
}

void add_decoded(WireFormat format, std::span<const std::byte> wire, std::span<float> values) {
    visit_decoded(format, wire, values.size(),
                  [&](std::size_t begin, const float* terms, std::size_t count) {
                      float* sum = values.data() + begin;
                      for (std::size_t i = 0; i < count; ++i) sum[i] += terms[i];
                  });
}

}  // namespace hpcai::comm
