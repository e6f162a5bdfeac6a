// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <hpcai/data/climate_channels.hpp>
#include <hpcai/tensor/dtype.hpp>

/// Normalization of fields in fp32, and conversion to and from f32, f16 and bf16.
namespace hpcai::data {

/// Normalizes `fields` (pixels, 16) in place.
void normalize(std::span<float> fields, const ChannelStatistics& statistics);

/// Normalizes `planes` (16, H, W) in physical units and writes `fields` (H, W, 16) in `dtype`.
void write_normalized(std::span<const float> planes, const ChannelStatistics& statistics,
                      tensor::DType dtype, std::span<std::byte> fields, int threads = 1);

/// Convert values from fp32 to `dtype` (f32, f16 or bf16), rounded to nearest even, and back.
void convert_from_fp32(std::span<const float> from, tensor::DType dtype, std::span<std::byte> to);
void convert_to_fp32(std::span<const std::byte> from, tensor::DType dtype, std::span<float> to);

/// Returns whether all values of type `dtype` (f32, f16 or bf16) are finite.
bool all_finite(std::span<const std::byte> numbers, tensor::DType dtype);

}  // namespace hpcai::data
