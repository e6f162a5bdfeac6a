// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <hpcai/base/log.hpp>
#include <hpcai/comm/gradient_reducer.hpp>
#include <hpcai/context/run_context.hpp>

namespace hpcai::group {

/// Returns the all-reduce options of the ranks with this rank's stage and shard of the model.
/// Throws as prediction::all_reduce_options.
comm::AllReduceOptions all_reduce_options_of(const context::RunContext& context);

/// The facts about a rank that make_gradient_reducer() needs.
struct ReducerSettings {
    const config::Config& config;
    device::Device& device;
    std::string host;
    comm::AllReduceOptions all_reduce;
    bool has_sync_batch_norm = false;  // several ranks share BatchNorm statistics
};

/// Makes a reducer as the overload for a RunContext does.
std::unique_ptr<comm::GradientReducer> make_gradient_reducer(const ReducerSettings& facts,
                                                             comm::Communicator& group,
                                                             Logger& log);

/// Makes the reducer for the gradients of `group`, whose ranks train the same parameters. Several
/// ranks use NCCL if each has its own GPU and the same version of NCCL, unless
/// communication.backend or BatchNorm statistics over ranks prevent this. Otherwise the reducer
/// uses MPI on the host. If several ranks compute on GPUs, rank 0 logs the choice and, for MPI, the
/// reason. Throws Error(launch) if communication.backend is nccl but NCCL cannot be used.
/// Collective in the group.
std::unique_ptr<comm::GradientReducer> make_gradient_reducer(const context::RunContext& context,
                                                             const context::Resources& resources,
                                                             comm::Communicator& group,
                                                             Logger& log);

}  // namespace hpcai::group
