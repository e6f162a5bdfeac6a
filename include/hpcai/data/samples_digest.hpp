// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <hpcai/data/sample_set.hpp>

namespace hpcai::data {

/// SHA-256, in hexadecimal digits, of the names and classes of all training and test samples in
/// order: what the numbers stand for by which models draw their samples. No sample is read.
std::string samples_digest(const SampleSets& samples);

}  // namespace hpcai::data
