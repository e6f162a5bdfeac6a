// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/records/run_record.hpp>

namespace hpcai::group {

/// Returns at the leader the results of all other ranks, by rank, without empty ones; nothing
/// elsewhere. Collective in the group.
std::vector<GroupResult> gather_results(comm::Communicator& group, const GroupResult& mine);

}  // namespace hpcai::group
