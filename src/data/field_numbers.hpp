// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include <hpcai/data/climate_channels.hpp>
#include <hpcai/tensor/dtype.hpp>

/// Values of fields: normalized in fp32, stored as f32, f16 or bf16.
namespace hpcai::data {

/// Normalizes pixels of 16 values in fp32, in place.
void normalize(std::span<float> fields, const ChannelStatistics& statistics);

/// Writes `planes` (16, H, W) in physical units as normalized (H, W, 16), rounded to `dtype`.
void write_normalized(std::span<const float> planes, const ChannelStatistics& statistics,
                      tensor::DType dtype, std::span<std::byte> fields, int threads = 1);

/// Convert from fp32 to `dtype` (f32, f16 or bf16) with rounding, and back.
void write_numbers(std::span<const float> from, tensor::DType dtype, std::span<std::byte> to);
void read_numbers(std::span<const std::byte> from, tensor::DType dtype, std::span<float> to);

/// Returns whether all numbers (f32, f16 or bf16) are finite.
bool all_finite(std::span<const std::byte> numbers, tensor::DType dtype);

}  // namespace hpcai::data
