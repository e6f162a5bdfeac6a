// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/nccl_reducer.hpp>
#include <hpcai/comm/rank_device.hpp>
#include <hpcai/device/cuda_library.hpp>
#include <hpcai/group/make_gradient_reducer.hpp>
#include <hpcai/prediction/all_reduce_options.hpp>

namespace hpcai::group {
namespace {

/// Returns why NCCL cannot reduce the group's gradients; empty if it can. Equal on all ranks.
std::optional<std::string> reason_against_nccl(const ReducerSettings& facts,
                                               comm::Communicator& group,
                                               const device::CudaLibrary& library) {
    if (facts.config.communication.backend == config::CommunicationBackend::mpi) {
        return "communication.backend is mpi";
    }
    if (facts.has_sync_batch_norm) {
        // In each BatchNorm, the host waits for the GPU. An NCCL kernel on the GPU could then wait
        // for a rank whose host waits for this rank's statistics: a deadlock.
        return "training.batch_norm_samples span several ranks, which synchronize through the host";
    }
    const auto nccl_version =
        reinterpret_cast<decltype(&hpcai_nccl_version)>(library.symbol("hpcai_nccl_version"));
    return comm::obstacle_to_nccl(comm::gather_rank_devices(
        group, {.host = facts.host, .uuid = facts.device.uuid(), .nccl_version = nccl_version()}));
}

}  // namespace

comm::AllReduceOptions all_reduce_options_of(const context::RunContext& context) {
    return prediction::all_reduce_options(
        context.config.communication, context.controller, context.place.group,
        context.controller.layout().partition_of(context.place.group_rank));
}

std::unique_ptr<comm::GradientReducer> make_gradient_reducer(const ReducerSettings& facts,
                                                             comm::Communicator& group,
                                                             Logger& log) {
    const bool is_on_gpu = !facts.device.uuid().empty();
    const comm::AllReduceOptions& options = facts.all_reduce;
    if (group.size() == 1 || !is_on_gpu) {
        return comm::make_point_to_point_reducer(group, nullptr, options);
    }
    const auto library = device::CudaLibrary::open();
    const auto obstacle = reason_against_nccl(facts, group, *library);
    if (!obstacle) {
        const auto make = reinterpret_cast<decltype(&hpcai_make_nccl_reducer)>(
            library->symbol("hpcai_make_nccl_reducer"));
        // NCCL's own all-reduce does not give the same bits in every run.
        const bool has_schedule =
            !comm::is_library_all_reduce(options) || facts.config.run.deterministic;
        std::unique_ptr<comm::GradientReducer> reducer(
            make({.group = group,
                  .device = facts.device,
                  .all_reduce = has_schedule ? std::optional(options) : std::nullopt}));
        if (group.rank() == 0) log.info("gradients are reduced by {}", reducer->description());
        return reducer;
    }
    require(facts.config.communication.backend != config::CommunicationBackend::nccl,
            ExitCode::launch, "communication.backend is nccl, but this group cannot use NCCL: {}",
            *obstacle);
    auto reducer = comm::make_point_to_point_reducer(group, &facts.device, options);
    if (group.rank() == 0) {
        log.warn("gradients are reduced by {}, which is slower than NCCL: {}",
                 reducer->description(), *obstacle);
    }
    return reducer;
}

std::unique_ptr<comm::GradientReducer> make_gradient_reducer(const context::RunContext& context,
                                                             const context::Resources& resources,
                                                             comm::Communicator& group,
                                                             Logger& log) {
    return make_gradient_reducer(
        ReducerSettings{
            context.config, *resources.device, context.host(), all_reduce_options_of(context),
            plan::statistics_ranks(context.config.training, context.controller.layout()) > 1},
        group, log);
}

}  // namespace hpcai::group
