// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/config/keys.hpp>
#include <hpcai/plan/pipeline.hpp>
#include <hpcai/prediction/all_reduce_options.hpp>
#include <hpcai/verification/derive.hpp>

namespace hpcai::verification {
namespace {

using Result = GroupResult;

/// Returns the group's value that `exceeds` all others, or the last reason why there is none.
template <typename Exceeds = std::greater<>>
Quantity extreme(const std::vector<GroupResult>& groups, const auto& quantity_of,
                 const Exceeds& exceeds = {}) {
    std::optional<double> value;
    std::string reason = "no group finished";
    for (const GroupResult& group : groups) {
        const Quantity& one = std::invoke(quantity_of, group);
        if (!one.value && !one.reason.empty()) reason = one.reason;
        if (one.value && (!value || exceeds(*one.value, *value))) value = one.value;
    }
    return value_or_reason(value, reason);
}

std::int64_t largest(const std::vector<GroupResult>& groups, std::int64_t Result::*count) {
    std::int64_t most = 0;
    for (const GroupResult& group : groups) most = std::max(most, group.*count);
    return most;
}

const Quantity& exposed_seconds(const GroupResult& group) {
    return group.record.communication_seconds;
}

Quantity exposed_seconds_per_step(const GroupResult& group) {
    const Quantity& seconds = exposed_seconds(group);
    if (!seconds.value || group.record.iterations == 0) return no_value(seconds.reason);
    return {*seconds.value / static_cast<double>(group.record.iterations), ""};
}

/// Fills in torus_columns or ranks_per_node, whichever the algorithm has: the largest number that
/// the first rank of any group has.
void derive_places(const config::CommunicationConfig& settings,
                   const plan::ParallelismController& controller,
                   CommunicationRecord& communication) {
    communication.torus_columns = communication.ranks_per_node =
        no_value("communication.algorithm is " + communication.algorithm);
    const plan::Layout& layout = controller.layout();
    if (layout.data_degree() == 1) {
        communication.torus_columns = communication.ranks_per_node = no_value("no all-reduce");
        return;
    }
    double most = 0;
    for (int group = 0; group < layout.groups; ++group) {
        const comm::AllReduceTopology place = comm::all_reduce_topology(
            prediction::all_reduce_options(settings, controller, group), 0);
        most = std::max(most, static_cast<double>(place.inner.size()));
    }
    using config::AllReduceAlgorithm;
    if (settings.algorithm == AllReduceAlgorithm::torus_2d)
        communication.torus_columns = {most, ""};
    if (settings.algorithm == AllReduceAlgorithm::hierarchical) {
        communication.ranks_per_node = {most, ""};
    }
}

void derive_communication(const config::Config& config,
                          const plan::ParallelismController& controller,
                          const std::vector<GroupResult>& groups, RunRecord& record) {
    CommunicationRecord& communication = record.communication;
    communication = {};
    communication.algorithm = config::value_text(config, "communication.algorithm");
    communication.precision = config::value_text(config, "communication.precision");
    communication.statistics_ranks = plan::statistics_ranks(config.training, controller.layout());
    derive_places(config.communication, controller, communication);
    std::set<std::string> backends;
    for (const GroupResult& group : groups) {
        if (!group.all_reduce_backend.empty()) backends.insert(group.all_reduce_backend);
    }
    communication.backend =
        backends.empty() ? "none" : fmt::format("{}", fmt::join(backends, " and "));
    communication.gradient_bytes = largest(groups, &Result::gradient_bytes);
    communication.buckets = largest(groups, &Result::buckets);
    communication.exposed_seconds = extreme(groups, exposed_seconds);
    communication.exposed_seconds_per_step = extreme(groups, exposed_seconds_per_step);
    communication.bandwidth_bytes_per_second =
        extreme(groups, &Result::bandwidth_bytes_per_second, std::less<>());
    communication.sent_bytes_per_step = extreme(groups, &Result::sent_bytes_per_step);
    communication.between_nodes_bytes_per_step =
        extreme(groups, &Result::between_nodes_bytes_per_step);
    communication.out_of_node_bytes_per_step = extreme(groups, &Result::out_of_node_bytes_per_step);
    communication.statistics_sums_per_step = largest(groups, &Result::statistics_sums_per_step);
    communication.statistics_bytes_per_step = largest(groups, &Result::statistics_bytes_per_step);
    communication.statistics_seconds = extreme(groups, &Result::statistics_seconds);
}

void derive_parallel(const config::Config& config, const plan::Layout& layout,
                     const std::vector<GroupResult>& groups, RunRecord& record) {
    ParallelRecord& parallel = record.parallel;
    parallel = {};
    parallel.mode = config::value_text(config, "parallel.mode");
    parallel.data_degree = layout.data_degree();
    parallel.pipeline_degree = layout.stages;
    parallel.model_degree = layout.parts;
    parallel.micro_batches = layout.micro_batches;
    parallel.schedule = config::value_text(config, "parallel.schedule");
    parallel.shard_bytes_per_step = largest(groups, &Result::shard_bytes_per_step);
    parallel.shard_wait_seconds = layout.parts > 1 ? extreme(groups, &Result::shard_wait_seconds)
                                                   : no_value("the layers are in one shard");
    if (layout.stages == 1) {
        parallel.bubble_fraction = parallel.message_wait_seconds =
            no_value("the model is in one stage");
        return;
    }
    parallel.bubble_fraction = {plan::bubble_fraction(layout.stages, layout.micro_batches), ""};
    parallel.message_bytes_per_step = largest(groups, &Result::message_bytes_per_step);
    parallel.message_wait_seconds = extreme(groups, &Result::message_wait_seconds);
}

}  // namespace

void derive_traffic(const config::Config& config, const plan::ParallelismController& controller,
                    const std::vector<GroupResult>& groups, RunRecord& record) {
    derive_communication(config, controller, groups, record);
    derive_parallel(config, controller.layout(), groups, record);
}

}  // namespace hpcai::verification
