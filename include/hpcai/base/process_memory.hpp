// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

namespace hpcai {

/// The most host memory, in bytes, that this process has had resident at a time (VmHWM of
/// /proc/self/status); nothing where the system does not say. Shared pages count in each process.
std::optional<double> peak_resident_bytes();

/// Makes that what is resident now, where the system allows it.
void forget_peak_resident_bytes();

}  // namespace hpcai
