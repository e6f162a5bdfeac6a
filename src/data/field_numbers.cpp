// SPDX-License-Identifier: Apache-2.0
#include "field_numbers.hpp"

#include <algorithm>
#include <cstring>

#include <hpcai/base/error.hpp>
#include <hpcai/base/rounding.hpp>
#include <hpcai/tensor/half.hpp>

#include "worker_pool.hpp"

namespace hpcai::data {
namespace {

template <typename T>
std::span<const T> as(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

/// Returns whether the bits of all numbers, without the sign, are less than those of infinity.
template <typename Bits>
bool all_below(std::span<const std::byte> numbers, Bits infinity) {
    constexpr Bits kMagnitude = static_cast<Bits>(~Bits{0}) >> 1;
    Bits largest = 0;
    for (const Bits bits : as<Bits>(numbers)) {
        largest = std::max(largest, static_cast<Bits>(bits & kMagnitude));
    }
    return largest < infinity;
}

}  // namespace

void normalize(std::span<float> fields, const ChannelStatistics& statistics) {
    float mean[kClimateChannels];
    float deviation[kClimateChannels];
    for (std::size_t channel = 0; channel < kClimateChannels; ++channel) {
        mean[channel] = static_cast<float>(statistics.mean[channel]);
        deviation[channel] = static_cast<float>(statistics.standard_deviation[channel]);
    }
    for (std::size_t pixel = 0; pixel < fields.size(); pixel += kClimateChannels) {
        for (std::size_t channel = 0; channel < kClimateChannels; ++channel) {
            float& value = fields[pixel + channel];
            value = (value - mean[channel]) / deviation[channel];
        }
    }
}

void write_normalized(std::span<const float> planes, const ChannelStatistics& statistics,
                      tensor::DType dtype, std::span<std::byte> fields, int threads) {
    constexpr std::size_t kBlock = 1024;  // pixels that fit in a cache
    const std::size_t pixels = planes.size() / kClimateChannels;
    const std::size_t pixel_bytes = kClimateChannels * tensor::size_of(dtype);
    parallel_for(ceil_div(pixels, kBlock), threads, [&](std::int64_t block) {
        const std::size_t first = block * kBlock;
        const std::size_t count = std::min(kBlock, pixels - first);
        std::vector<float> numbers(count * kClimateChannels);
        for (std::size_t channel = 0; channel < kClimateChannels; ++channel) {
            const float* const plane = &planes[channel * pixels + first];
            for (std::size_t pixel = 0; pixel < count; ++pixel) {
                numbers[pixel * kClimateChannels + channel] = plane[pixel];
            }
        }
        normalize(numbers, statistics);
        convert_from_fp32(numbers, dtype, fields.subspan(first * pixel_bytes, count * pixel_bytes));
    });
}

void convert_from_fp32(std::span<const float> from, tensor::DType dtype, std::span<std::byte> to) {
    ensure(to.size() == from.size() * tensor::size_of(dtype), "{} numbers do not fit {} bytes",
           from.size(), to.size());
    auto* const halves = reinterpret_cast<std::uint16_t*>(to.data());
    if (dtype == tensor::DType::f32) {
        std::memcpy(to.data(), from.data(), to.size());
    } else if (dtype == tensor::DType::f16) {
        std::ranges::transform(from, halves, tensor::to_f16);
    } else {
        std::ranges::transform(from, halves, tensor::to_bf16);
    }
}

void convert_to_fp32(std::span<const std::byte> from, tensor::DType dtype, std::span<float> to) {
    ensure(from.size() == to.size() * tensor::size_of(dtype), "{} bytes do not fit {} numbers",
           from.size(), to.size());
    if (dtype == tensor::DType::f32) {
        std::memcpy(to.data(), from.data(), from.size());
    } else if (dtype == tensor::DType::f16) {
        std::ranges::transform(as<std::uint16_t>(from), to.begin(), tensor::from_f16);
    } else {
        std::ranges::transform(as<std::uint16_t>(from), to.begin(), tensor::from_bf16);
    }
}

bool all_finite(std::span<const std::byte> numbers, tensor::DType dtype) {
    if (dtype == tensor::DType::f32) return all_below<std::uint32_t>(numbers, 0x7F800000);
    return all_below<std::uint16_t>(numbers, dtype == tensor::DType::f16 ? 0x7C00 : 0x7F80);
}

}  // namespace hpcai::data
