// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <hpcai/tensor/dtype.hpp>

namespace hpcai::comm {

using tensor::kWireBlock;
using tensor::WireFormat;

/// Returns the value of communication.precision that selects it.
std::string_view name_of(WireFormat format);

/// Returns the bytes of `values` encoded values, padded to a multiple of 4, and of their scales.
std::size_t wire_bytes(WireFormat format, std::size_t values);

/// Encodes `values` to `wire`, which has wire_bytes() bytes at a 4-byte aligned address. For error
/// feedback (Seide et al. 2014) `residual` has one number for each value, else it is empty. encode
/// adds these numbers before rounding and replaces them by the rounding errors, or by 0 where an
/// error is not finite. fp32 neither reads nor changes `residual`.
void encode(WireFormat format, std::span<const float> values, std::span<std::byte> wire,
            std::span<float> residual);

/// Sets values[i] to the i-th value of `wire`.
void decode(WireFormat format, std::span<const std::byte> wire, std::span<float> values);

/// Adds the i-th value of `wire` to values[i] in fp32.
void add_decoded(WireFormat format, std::span<const std::byte> wire, std::span<float> values);

}  // namespace hpcai::comm
