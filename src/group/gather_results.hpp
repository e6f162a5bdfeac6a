// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <hpcai/base/run_record.hpp>
#include <hpcai/comm/communicator.hpp>

namespace hpcai::group {

/// What each rank of a group knows of its result: at the leader those of all other ranks that have
/// something in theirs, by rank; elsewhere nothing. Collective in the group.
std::vector<GroupResult> gather_results(comm::Communicator& group, const GroupResult& mine);

}  // namespace hpcai::group
