// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/ops/operation.hpp>
#include <hpcai/ops/pass.hpp>

namespace hpcai::ops {

/// What precision int8 means, on every device: whether this pass of a convolution multiplies
/// integers of 8 bits. Forward where it reads 32 channels or more, both images have a multiple of
/// 16, which leaves out a network's first convolution and small heads, and a result has at most
/// 2^16 terms, so that 32 bits hold their sum; the input gradient where besides the stride is 1,
/// the padding smaller than the kernel and its own results have at most so many terms; the weight
/// gradient never.
bool computes_in_int8(const Convolution& op, Pass pass);

}  // namespace hpcai::ops
