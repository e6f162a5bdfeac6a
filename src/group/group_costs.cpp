// SPDX-License-Identifier: Apache-2.0
#include "group_costs.hpp"

#include <array>
#include <span>

#include <hpcai/comm/all_reduce_traffic.hpp>

namespace hpcai::group {
namespace {

Quantity mean_over_ranks(comm::Communicator& group, double value) {
    group.all_reduce_sum(std::span(&value, 1));
    return {value / static_cast<double>(group.size()), ""};
}

/// None where one rank has none: slices of a model may sum in different ways.
Quantity mean_over_ranks(comm::Communicator& group, const Quantity& mine) {
    std::array<double, 2> sums{mine.value.value_or(0), mine.value ? 0.0 : 1.0};
    group.all_reduce_sum(sums);
    if (sums[1] == 0) return {sums[0] / static_cast<double>(group.size()), ""};
    return {std::nullopt, mine.value ? "no number of another slice" : mine.reason};
}

/// Returns the exposed time of this rank's sums, which a device may have made by itself.
Quantity exposed_seconds(const comm::BucketAccounting& sums,
                         const comm::StatisticsAccounting& statistics, bool is_device_sum) {
    if (!is_device_sum) {
        return {sums.exposed_seconds + sums.interleaved_seconds + statistics.seconds, ""};
    }
    if (!sums.timed) return {std::nullopt, "no step was repeated by a recording"};
    return {sums.timed->exposed, ""};
}

Quantity bandwidth_of(const comm::BucketAccounting& sums) {
    if (!sums.timed) return {std::nullopt, "no device has timed the sums by themselves"};
    const double bytes = static_cast<double>(sums.bytes_reduced) *
                         static_cast<double>(sums.timed_steps) / static_cast<double>(sums.steps);
    return {bytes / sums.timed->under_way, ""};
}

/// After the last step. All steps send the same bytes.
void record_traffic(const context::RunContext& context, comm::Communicator& group,
                    const comm::GradientReducer& reducer, const TrainingCosts& costs,
                    GroupResult& result) {
    const comm::StatisticsAccounting& statistics = costs.statistics;
    const bool are_counted = largest_of_ranks(group, costs.gradients ? 0 : 1) == 0;
    comm::SentBytes sent = costs.gradients.value_or(comm::SentBytes{});
    sent += statistics.sent;
    const comm::AllReduceTraffic bytes = comm::gather_traffic(group, context.place.node, sent);
    if (reducer.size() > 1) result.sum_backend = reducer.backend();
    const auto per_step = [&](std::int64_t comm::AllReduceTraffic::*of) -> Quantity {
        if (!are_counted) return {std::nullopt, "NCCL chooses the messages"};
        return {static_cast<double>(bytes.*of / result.record.iterations), ""};
    };
    result.sent_bytes_per_step = per_step(&comm::AllReduceTraffic::sent);
    result.between_nodes_bytes_per_step = per_step(&comm::AllReduceTraffic::between_nodes);
    result.out_of_node_bytes_per_step = per_step(&comm::AllReduceTraffic::out_of_node);
    result.statistics_sums_per_step =
        largest_of_ranks(group, statistics.sums / result.record.iterations);
    result.statistics_bytes_per_step =
        largest_of_ranks(group, statistics.bytes / result.record.iterations);
    result.statistics_seconds = mean_over_ranks(group, statistics.seconds);
}

/// The mean over the ranks is what a rank has waited; the most that one has sent.
void record_messages(comm::Communicator& group, const training::MessageAccounting& messages,
                     GroupResult& result) {
    if (messages.steps == 0) return;
    result.message_wait_seconds = mean_over_ranks(group, messages.wait_seconds);
    result.message_bytes_per_step = largest_of_ranks(group, messages.bytes_sent / messages.steps);
    result.part_wait_seconds = mean_over_ranks(group, messages.parts.wait_seconds);
    result.part_bytes_per_step =
        largest_of_ranks(group, messages.parts.bytes_sent / messages.steps);
}

}  // namespace

std::int64_t largest_of_ranks(comm::Communicator& group, std::int64_t value) {
    auto largest = static_cast<double>(value);
    group.all_reduce_max(std::span(&largest, 1));
    return static_cast<std::int64_t>(largest);
}

Quantity record_costs(const CostsOf& of, const TrainingCosts& costs, GroupResult& result) {
    const auto& [context, group, replicas, reducer, buckets, gradient_bytes] = of;
    GroupRecord& record = result.record;
    record.input_wait_seconds = mean_over_ranks(group, costs.input_wait_seconds);
    // Only the first slice reads.
    *record.input_wait_seconds.value *= context.controller.layout().slices();
    const bool is_device_sum = replicas.size() > 1 && reducer.can_be_recorded();
    record.communication_seconds =
        mean_over_ranks(group, exposed_seconds(costs.sums, costs.statistics, is_device_sum));
    result.bandwidth_bytes_per_second = bandwidth_of(costs.sums);
    result.communicated_bytes = largest_of_ranks(group, costs.sums.bytes_reduced);
    if (replicas.size() > 1) {
        result.gradient_bytes = largest_of_ranks(group, gradient_bytes);
        result.buckets = largest_of_ranks(group, buckets);
    }
    record_traffic(context, group, reducer, costs, result);
    record_messages(group, costs.messages, result);
    return overlapped_seconds_per_step(costs.sums, replicas.size(), is_device_sum);
}

}  // namespace hpcai::group
