// SPDX-License-Identifier: Apache-2.0
#include <hpcai/base/error.hpp>

#include "stream.hpp"

namespace hpcai::kernels {

void fail(const char* what, const char* detail) {
    throw Error(ExitCode::internal, fmt::format("internal error: {} {}", what, detail));
}

}  // namespace hpcai::kernels
