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

/// Bytes of `values` values with scales: the values, up to the next multiple of 4 bytes, and then
/// the scales.
std::size_t wire_bytes(WireFormat format, std::size_t values);

/// Writes `values` to `wire`, which begins at a multiple of 4 bytes and has wire_bytes(). With a
/// `residual`, as long as `values` or empty, it is error feedback (Seide et al. 2014): what it
/// holds is added first, and then it holds what rounding has taken away, 0 where that is not
/// finite.
void encode(WireFormat format, std::span<const float> values, std::span<std::byte> wire,
            std::span<float> residual);

/// values[i] = the i-th value of `wire`.
void decode(WireFormat format, std::span<const std::byte> wire, std::span<float> values);

/// values[i] += the i-th value of `wire`, in fp32.
void add_decoded(WireFormat format, std::span<const std::byte> wire, std::span<float> values);

}  // namespace hpcai::comm
