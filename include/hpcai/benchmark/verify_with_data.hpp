// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <hpcai/verification/verify.hpp>

namespace hpcai::benchmark {

struct DataToVerify {
    std::string folder;      // empty: none
    std::int64_t steps = 0;  // number of training steps to repeat in each group; 0: none
};

/// Verifies the result of one run like results::verify_result. If it has no findings, compares the
/// result with the data in `with.folder`: names and labels of the samples, and the predictions of
/// each model, which are recomputed from its stored weights on this machine. Let C be the common
/// folder of the run's data paths; with.folder/<name of C> replaces C if it has all data paths,
/// else with.folder does. Then repeats the first `with.steps` steps of each finished group, and as
/// many after each kept checkpoint, and compares their losses with steps.csv. docs/METRICS.md has
/// the tolerances. Throws Error(usage) if the run has no weights, or if its steps cannot be
/// repeated; Error(data) if the folder lacks a data path; and the errors of data::make_sample_sets.
verification::Verification verify_with_data(const std::filesystem::path& directory,
                                            const DataToVerify& with);

}  // namespace hpcai::benchmark
