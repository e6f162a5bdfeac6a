// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/ops/operation.hpp>

namespace hpcai::ops {

/// What the backward pass of an operation reads of its forward pass besides what the kernel saves.
struct BackwardReads {
    bool inputs = false;
    bool output = false;
};
BackwardReads backward_reads(const Operation& operation);

}  // namespace hpcai::ops
