// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "context.hpp"

namespace hpcai::device::cuda {

/// Records what `enqueue` enqueues on `stream`, and on streams that it makes wait for that one and
/// lets that one wait for, as a CUDA graph. Throws what `enqueue` throws, and Error(internal) when
/// something in it cannot be recorded; either way the stream works on as before.
std::unique_ptr<Recording> record_work(cudaStream_t stream, const std::function<void()>& enqueue);

}  // namespace hpcai::device::cuda
