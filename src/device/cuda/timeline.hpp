// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "context.hpp"

namespace hpcai::device::cuda {

/// Of the work on `stream`, by the GPU's clock.
std::unique_ptr<Timeline> make_timeline(cudaStream_t stream);

}  // namespace hpcai::device::cuda
