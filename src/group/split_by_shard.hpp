// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/context/run_context.hpp>

namespace hpcai::group {

/// Returns the communicator of the ranks with this rank's stage and shard of the model; null if
/// every rank trains the whole model. Throws Error(launch) if the ranks of the group store
/// activations in different layouts, because they exchange them unchanged. Collective in the group.
std::unique_ptr<comm::Communicator> split_by_shard(const context::RunContext& context,
                                                   const context::Resources& resources,
                                                   comm::Communicator& group);

}  // namespace hpcai::group
