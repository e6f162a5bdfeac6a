// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include <hpcai/verification/verify.hpp>

namespace hpcai::benchmark {

/// Verifies the result of one run like results::verify_result. If that finds nothing, compares the
/// result with the data in the folder `data`: names and labels of the samples, and the predictions
/// of each model, which its stored weights make again on this machine. `data` replaces the common
/// folder of all data paths of the configuration. docs/METRICS.md has the tolerances. Throws
/// Error(usage) if the run has no weights, and the errors of data::make_sample_sets.
verification::Verification verify_with_data(const std::filesystem::path& directory,
                                            const std::filesystem::path& data);

}  // namespace hpcai::benchmark
