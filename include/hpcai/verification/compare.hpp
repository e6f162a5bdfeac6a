// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <hpcai/verification/comparison.hpp>

namespace hpcai::verification {

/// Returns "same", "faster" ...
std::string_view word_of(Judgement judgement);

/// The result in `second` against that in `first`, by the statistics of docs/METRICS.md
/// ("Comparison"); either may be the directory of several runs. Files are checked against the
/// manifests, and what does not agree is told and compared; nothing is verified beyond. Throws
/// Error(usage) where one is no result directory, Error(data) for files that cannot be read.
Comparison compare(const std::filesystem::path& first, const std::filesystem::path& second);

std::string to_text(const Comparison& comparison);
std::string to_json(const Comparison& comparison);

}  // namespace hpcai::verification
