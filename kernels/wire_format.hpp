// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include <hpcai/tensor/wire_format.hpp>

#include "stream.hpp"

namespace hpcai::kernels {

/// comm::encode in device memory, with the same bits except for NaN. `residual` has the length of
/// `values` or is null; wire (comm::wire_bytes) is 4-byte aligned.
void encode_for_wire(tensor::WireFormat format, std::span<const float> values, float* residual,
                     std::byte* wire, Stream stream);

/// comm::decode and comm::add_decoded, with the same bits except for NaN.
void decode_from_wire(tensor::WireFormat format, const std::byte* wire, std::span<float> values,
                      Stream stream);
void add_from_wire(tensor::WireFormat format, const std::byte* wire, std::span<float> values,
                   Stream stream);

/// Sets *is_left_out to 1 if any of `values`, the sums of a step, is infinite or NaN: the optimizer
/// then skips (leaves out) the step.
void leave_out_unless_finite(std::span<const float> values, int* is_left_out, Stream stream);

/// Sets `residual` to 0 if *is_left_out, so that error feedback adds nothing of a skipped step to
/// the next.
void forget_if_left_out(const int* is_left_out, std::span<float> residual, Stream stream);

}  // namespace hpcai::kernels
