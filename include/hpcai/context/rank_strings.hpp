// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <hpcai/comm/communicator.hpp>

namespace hpcai::context {

/// Returns the first 255 bytes of every rank's string, by rank. Collective.
std::vector<std::string> all_gather_strings(comm::Communicator& everyone, std::string_view mine);

/// Returns every rank's whole string, by rank, at rank 0; nothing elsewhere. Collective.
std::vector<std::string> gather_strings(comm::Communicator& ranks, const std::string& mine);

/// Returns the string of rank 0. Collective.
std::string broadcast_string(comm::Communicator& everyone, const std::string& mine);

}  // namespace hpcai::context
