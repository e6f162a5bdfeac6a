// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <hpcai/data/sample_set.hpp>

namespace hpcai::data {

/// The samples `chosen` of a set, renumbered from 0 in that order. Throws Error(internal) for a
/// number that is not in the set.
std::shared_ptr<const SampleSet> make_subset(std::shared_ptr<const SampleSet> samples,
                                             std::vector<std::uint32_t> chosen);

}  // namespace hpcai::data
