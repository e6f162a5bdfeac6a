// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <hpcai/data/sample_index.hpp>

namespace hpcai::data {

/// Where files are not called as those of ImageNet-1k (ILSVRC 2012): class folders by WordNet
/// numbers, "n01440764", training files by class and number, "n01440764_10026.JPEG", test files
/// "ILSVRC2012_val_00000001.JPEG" to 00050000, each once. The upper or lower case of the ending and
/// the way it is spelled do not matter. At most one sentence for each of the three.
std::vector<std::string> objections_to_names(const SampleIndex& training,
                                             const SampleIndex& validation);

}  // namespace hpcai::data
