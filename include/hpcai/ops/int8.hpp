// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/ops/operation.hpp>
#include <hpcai/ops/pass.hpp>

namespace hpcai::ops {

/// What precision int8 means, on every device: whether this pass of a convolution multiplies
/// integers of 8 bits. Forward where it reads 32 channels or more and both images have a multiple
/// of 16, which leaves out a network's first convolution and small heads; the input gradient where
/// besides the stride is 1 and the padding smaller than the kernel; the weight gradient never. A
/// sum of 32 bits holds all products in both.
bool computes_in_int8(const Convolution& op, Pass pass);

}  // namespace hpcai::ops
