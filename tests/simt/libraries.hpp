// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "device/cuda/cudnn_graphs.hpp"

/// Controls of the cuDNN emulation in tests/simt/cudnn.cpp, for tests.
namespace hpcai::simt {

/// Makes all further executions of plans of this pass fail, like plans that fail only on a real
/// device. Without a pass, no execution fails.
void let_fail(std::optional<device::cuda::ConvolutionPass> pass);

/// Numbers of plans with faults; -1: none.
struct BadPlans {
    int wrong = 15;   // its results are 1 % too large
    int slow = -1;    // takes a second longer
    int deadly = -1;  // makes the device unusable
    int bulky = -1;   // takes 0.6 s to finalize, more than the limit of a graph's trials
};
void set_bad_plans(const BadPlans& plans);

}  // namespace hpcai::simt
