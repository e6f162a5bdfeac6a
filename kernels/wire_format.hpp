// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include <hpcai/tensor/dtype.hpp>

#include "stream.hpp"

namespace hpcai::kernels {

/// Does what comm::encode does, in device memory and with the same bits except for NaN. `residual`
/// (error feedback) is null or has the length of `values`. For WireFormat::fp32, too, it is added
/// and then set to 0, unlike in comm::encode. `wire` has comm::wire_bytes() and is 4-byte aligned.
void encode_for_wire(tensor::WireFormat format, std::span<const float> values, float* residual,
                     std::byte* wire, Stream stream);

/// These functions do what comm::decode and comm::add_decoded do, with the same bits except for
/// NaN.
void decode_from_wire(tensor::WireFormat format, const std::byte* wire, std::span<float> values,
                      Stream stream);
void add_from_wire(tensor::WireFormat format, const std::byte* wire, std::span<float> values,
                   Stream stream);

/// Sets *is_skipped to 1 if any of `values`, the gradient sums of a step, is infinite or NaN. The
/// optimizer then skips the step.
void mark_skipped_unless_finite(std::span<const float> values, int* is_skipped, Stream stream);

/// Sets `residual` to 0 if *is_skipped is not 0, so that error feedback does not add errors of a
/// skipped step to the next one.
void clear_if_skipped(const int* is_skipped, std::span<float> residual, Stream stream);

}  // namespace hpcai::kernels
