// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/context/run_context.hpp>

namespace hpcai::group {

/// The ranks that train this one's slice of the model: its stage's, or its part's of that; null
/// where there is one for the whole group. Throws Error(launch)
/// when the ranks of the group do not keep activations alike, as they send them to each other as
/// they are. Collective in the group.
std::unique_ptr<comm::Communicator> split_by_shard(const context::RunContext& context,
                                                   const context::Resources& resources,
                                                   comm::Communicator& group);

}  // namespace hpcai::group
