// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "context.hpp"

namespace hpcai::device::cuda {

/// Captures the work that `enqueue` enqueues on `stream`, and on streams that are joined to it by
/// events in both directions, as a CUDA graph. Throws what `enqueue` throws, and Error(internal)
/// for work that cannot be captured; the stream remains usable in both cases.
std::unique_ptr<Recording> record_work(cudaStream_t stream, const std::function<void()>& enqueue);

}  // namespace hpcai::device::cuda
