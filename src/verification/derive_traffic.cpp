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

/// Returns the largest value of all groups; the smallest if `replaces` is std::less. If no group
/// has a value, returns the last reason.
template <typename Replaces = std::greater<>>
Quantity extreme(const std::vector<GroupResult>& groups, const auto& quantity_of,
                 const Replaces& replaces = {}) {
    std::optional<double> value;
    std::string reason = "no group finished";
    for (const GroupResult& group : groups) {
        const Quantity& quantity = std::invoke(quantity_of, group);
        if (!quantity.value && !quantity.reason.empty()) reason = quantity.reason;
        if (quantity.value && (!value || replaces(*quantity.value, *value))) value = quantity.value;
    }
    return value_or_reason(value, reason);
}

std::int64_t largest(const std::vector<GroupResult>& groups, std::int64_t Result::*count) {
    std::int64_t maximum = 0;
    for (const GroupResult& group : groups) maximum = std::max(maximum, group.*count);
    return maximum;
}

const Quantity& exposed_seconds(const GroupResult& group) {
    return group.record.communication_seconds;
}

Quantity exposed_seconds_per_step(const GroupResult& group) {
    const Quantity& seconds = exposed_seconds(group);
    if (!seconds.value || group.record.iterations == 0) return no_value(seconds.reason);
    return {*seconds.value / static_cast<double>(group.record.iterations), ""};
}

/// Fills in torus_columns or ranks_per_node if the algorithm uses that number. The number is the
/// maximum over the leaders of all groups.
void derive_inner_ranks(const config::CommunicationConfig& settings,
                        const plan::ParallelismController& controller,
                        CommunicationRecord& communication) {
    const plan::Layout& layout = controller.layout();
    communication.torus_columns = communication.ranks_per_node = no_value(
        layout.data_degree() == 1 ? "no all-reduce"
                                  : "communication.algorithm is " + communication.algorithm);
    if (layout.data_degree() == 1) return;
    double inner_ranks = 0;
    for (int group = 0; group < layout.groups; ++group) {
        const comm::AllReduceTopology place = comm::all_reduce_topology(
            prediction::all_reduce_options(settings, controller, group), 0);
        inner_ranks = std::max(inner_ranks, static_cast<double>(place.inner.size()));
    }
    using enum config::AllReduceAlgorithm;
    if (settings.algorithm == torus_2d) communication.torus_columns = {inner_ranks, ""};
    if (settings.algorithm == hierarchical) communication.ranks_per_node = {inner_ranks, ""};
}

void derive_communication(const config::Config& config,
                          const plan::ParallelismController& controller,
                          const std::vector<GroupResult>& groups, RunRecord& record) {
    CommunicationRecord& communication = record.communication;
    communication = {};
    communication.algorithm = config::value_text(config, "communication.algorithm");
    communication.precision = config::value_text(config, "communication.precision");
    communication.statistics_ranks = plan::statistics_ranks(config.training, controller.layout());
    derive_inner_ranks(config.communication, controller, communication);
    std::set<std::string> backends;
    for (const GroupResult& group : groups)
        if (!group.all_reduce_backend.empty()) backends.insert(group.all_reduce_backend);
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
    parallel.model_degree = layout.shards;
    parallel.micro_batches = layout.micro_batches;
    parallel.schedule = config::value_text(config, "parallel.schedule");
    parallel.shard_bytes_per_step = largest(groups, &Result::shard_bytes_per_step);
    parallel.shard_wait_seconds = layout.shards > 1 ? extreme(groups, &Result::shard_wait_seconds)
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
