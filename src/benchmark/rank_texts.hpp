// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <hpcai/comm/communicator.hpp>

namespace hpcai::benchmark {

/// What every rank says, by rank; of each the first 255 bytes. Collective.
std::vector<std::string> gather_texts(comm::Communicator& everyone, std::string_view mine);

/// What every rank says, whole and by rank, at rank 0; elsewhere nothing. Collective.
std::vector<std::string> collect_texts(comm::Communicator& ranks, const std::string& mine);

}  // namespace hpcai::benchmark
