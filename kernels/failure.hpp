// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace hpcai::kernels {

/// Throws Error(internal) with `what` and `detail`. For .cu files, because nvcc 13.0 does not
/// compile the formatting library that base/error.hpp includes.
[[noreturn]] void fail(const char* what, const char* detail = "");

}  // namespace hpcai::kernels
