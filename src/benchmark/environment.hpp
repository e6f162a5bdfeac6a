// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "start.hpp"

namespace hpcai::benchmark {

/// SHA-256 of the running program, or "unreadable".
std::string binary_digest();

/// Allow-listed facts about program, machine and launch; never the whole environment, which may
/// hold secrets.
std::map<std::string, std::string> describe_environment(const Start& start,
                                                        const RunRequest& request);

}  // namespace hpcai::benchmark
