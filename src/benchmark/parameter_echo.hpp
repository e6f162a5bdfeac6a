// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <hpcai/base/run_record.hpp>

#include "start.hpp"

namespace hpcai::benchmark {

/// The settings that the summary echoes, in force and not as they were written: no `auto` where the
/// start has decided.
std::vector<ParameterRecord> echo(const Start& start);

}  // namespace hpcai::benchmark
