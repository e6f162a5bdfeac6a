// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

namespace hpcai::data {

/// Calls work(i) once for every i < count from `threads` threads and returns when all are done.
/// After an exception no further calls start; the one of the lowest i is passed on.
void parallel_for(std::int64_t count, int threads, const std::function<void(std::int64_t)>& work);

}  // namespace hpcai::data
