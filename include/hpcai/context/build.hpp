// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

namespace hpcai::context {

/// Returns how this program was built: git_commit (of the source, or "unknown"), compiler,
/// build_type, cuda_engine (versions of its libraries, or "none"), mpi and onednn.
std::map<std::string, std::string> describe_build();

}  // namespace hpcai::context
