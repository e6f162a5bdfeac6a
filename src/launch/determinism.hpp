// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <hpcai/base/run_record.hpp>
#include <hpcai/context/devices.hpp>

namespace hpcai::launch {

/// What a run with groups of `degree` ranks may promise of its bits: what all `ranks` promise of
/// theirs, and for that their conditions and those of the sums between them.
DeterminismRecord describe_determinism(bool requested, std::span<const context::RankFacts> ranks,
                                       int degree);

}  // namespace hpcai::launch
