// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include <hpcai/verification/finding.hpp>

namespace hpcai::verification {

/// Checks what a run has stored in `directory`: its files against the manifest, each that is read
/// by the benchmark against its schema, and every number that others imply against these, down to
/// steps, predictions and weights; docs/METRICS.md ("Verification") lists them. Numbers must be
/// equal to the last bit, but for those that the order of a sum over ranks or the machine's pow()
/// may change in the last. Starts neither MPI nor a device. Throws Error(usage) where there is no
/// such directory.
Verification verify(const std::filesystem::path& directory);

}  // namespace hpcai::verification
