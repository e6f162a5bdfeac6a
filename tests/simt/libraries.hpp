// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "device/cuda/cudnn_graphs.hpp"

/// Controls of the emulations of libraries in tests/simt, for tests.
namespace hpcai::simt {

/// Makes all further executions of plans of this pass fail, like plans that fail only on a real
/// device. Without a pass, no execution fails.
void let_fail(std::optional<device::cuda::ConvolutionPass> pass);

/// Numbers of plans with faults; -1: none.
struct BadPlans {
    int wrong = 15;  // its results are 1 % too large
    int slow = -1;   // takes a second longer
    int fatal = -1;  // makes the device unusable
    int bulky = -1;  // takes 0.6 s to finalize, more than the limit of a graph's trials
};
void set_bad_plans(const BadPlans& plans);

/// The nvJPEG that a device opens afterwards. It rejects batches with a progressive or grey file or
/// an image of `rejected_width`.
struct NvjpegBehaviour {
    bool is_missing = false;
    bool has_hardware = true;
    int rejected_width = -1;  // pixels
};
void set_nvjpeg(const NvjpegBehaviour& behaviour);

struct NvjpegCalls {
    int batches = 0;   // including rejected ones
    int pictures = 0;  // of batches that were not rejected
};
/// Returns the calls since set_nvjpeg().
NvjpegCalls nvjpeg_calls();

}  // namespace hpcai::simt
