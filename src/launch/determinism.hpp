// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <hpcai/context/devices.hpp>
#include <hpcai/records/run_record.hpp>

namespace hpcai::launch {

/// Returns the guarantee of equal bits for groups of `degree` ranks: the weakest of all `ranks`,
/// with the conditions of their devices and of the sums between them.
DeterminismRecord describe_determinism(bool requested, std::span<const context::RankFacts> ranks,
                                       int degree);

}  // namespace hpcai::launch
