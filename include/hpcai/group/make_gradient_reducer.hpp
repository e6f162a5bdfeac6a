// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <hpcai/base/log.hpp>
#include <hpcai/comm/gradient_reducer.hpp>
#include <hpcai/context/run_context.hpp>

namespace hpcai::group {

/// Returns how the ranks of this rank's shard sum gradients. Throws as
/// prediction::all_reduce_options.
comm::AllReduceOptions all_reduce_options_of(const context::RunContext& context);

/// A rank that sums gradients with others.
struct SummingRank {
    const config::Config& config;
    device::Device& device;
    std::string host;
    comm::AllReduceOptions sums;
    bool spans_statistics = false;  // BatchNorm statistics are of several ranks
};

/// Makes the same reducer as the next function, without a RunContext.
std::unique_ptr<comm::GradientReducer> make_gradient_reducer(const SummingRank& rank,
                                                             comm::Communicator& group,
                                                             Logger& log);

/// Makes the reducer that sums the gradients of `group`, the ranks with one shard. NCCL sums
/// between GPUs with one rank each, unless communication.backend or BatchNorm statistics over ranks
/// prevent it. Otherwise MPI sums, for GPUs through copies on the host. Logs the choice and its
/// reason. Throws Error(launch) when NCCL is required and cannot be used. Collective in the group.
std::unique_ptr<comm::GradientReducer> make_gradient_reducer(const context::RunContext& context,
                                                             const context::Resources& resources,
                                                             comm::Communicator& group,
                                                             Logger& log);

}  // namespace hpcai::group
