// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <hpcai/base/log.hpp>
#include <hpcai/comm/gradient_reducer.hpp>
#include <hpcai/context/run_context.hpp>

namespace hpcai::group {

/// How the ranks of this rank's stage sum by the configuration. Throws as prediction::sum_options.
comm::SumOptions sum_options_of(const context::RunContext& context);

/// Ranks that sum gradients, as each of them knows it.
struct SummingRank {
    const config::Config& config;
    device::Device& device;
    std::string host;
    comm::SumOptions sums;
    bool spans_statistics = false;  // BatchNorm statistics are of several ranks
};

/// As below, of any ranks.
std::unique_ptr<comm::GradientReducer> make_gradient_reducer(const SummingRank& rank,
                                                             comm::Communicator& group,
                                                             Logger& log);

/// What sums the gradients of `group`, the ranks of a stage: NCCL between GPUs of one rank each,
/// unless communication.backend says otherwise or BatchNorm statistics are of several ranks, else
/// MPI, through copies on the host where gradients lie on a GPU. Says in the log which and why.
/// Throws Error(launch) when NCCL was asked for and cannot serve. Collective in the group.
std::unique_ptr<comm::GradientReducer> make_gradient_reducer(const context::RunContext& context,
                                                             const context::Resources& resources,
                                                             comm::Communicator& group,
                                                             Logger& log);

}  // namespace hpcai::group
