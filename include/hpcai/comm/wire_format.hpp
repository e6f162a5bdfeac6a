// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include <hpcai/tensor/wire_format.hpp>

namespace hpcai::comm {

using tensor::kWireBlock;
using tensor::WireFormat;

/// Returns the name in communication.precision.
std::string_view name_of(WireFormat format);

/// Bytes of one value, without scales.
std::size_t value_bytes(WireFormat format);

/// Bytes of `values` encoded values: the values, padded to a multiple of 4 bytes, then the scales.
std::size_t wire_bytes(WireFormat format, std::size_t values);

/// Encodes `values` to `wire`, which has wire_bytes() bytes at a 4-byte aligned address. `residual`
/// is empty or, for error feedback (Seide et al. 2014), has one number for each value. They are
/// added to the values before rounding and replaced by the rounding errors, or by 0 where an error
/// is not finite. fp32 neither reads nor changes `residual`.
void encode(WireFormat format, std::span<const float> values, std::span<std::byte> wire,
            std::span<float> residual);

/// values[i] = the i-th value of `wire`.
void decode(WireFormat format, std::span<const std::byte> wire, std::span<float> values);

/// values[i] += the i-th value of `wire`, in fp32.
void add_decoded(WireFormat format, std::span<const std::byte> wire, std::span<float> values);

}  // namespace hpcai::comm
