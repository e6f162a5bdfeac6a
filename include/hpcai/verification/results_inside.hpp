// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace hpcai::verification {

/// Returns "; results inside, newest first: a/run-2, a/run-1" with up to three result directories
/// in `folder`, for the error that `folder` is none. Empty if it contains none. Escapes
/// control characters.
std::string describe_results_inside(const std::filesystem::path& folder);

}  // namespace hpcai::verification
