// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include <hpcai/tensor/wire_format.hpp>

#include "stream.hpp"

namespace hpcai::kernels {

/// As comm::encode, in device memory: the same bits but for those of NaN. `residual` is as long as
/// `values`, or null; wire (comm::wire_bytes), at a multiple of 4 bytes.
void encode_for_wire(tensor::WireFormat format, std::span<const float> values, float* residual,
                     std::byte* wire, Stream stream);

/// As comm::decode and comm::add_decoded, with the same bits but for those of NaN.
void decode_from_wire(tensor::WireFormat format, const std::byte* wire, std::span<float> values,
                      Stream stream);
void add_from_wire(tensor::WireFormat format, const std::byte* wire, std::span<float> values,
                   Stream stream);

/// Sets *is_left_out where any of `values` is infinite or NaN.
void leave_out_unless_finite(std::span<const float> values, int* is_left_out, Stream stream);

/// residual[i] = 0 where *is_left_out.
void forget_if_left_out(const int* is_left_out, std::span<float> residual, Stream stream);

}  // namespace hpcai::kernels
