// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/config/keys.hpp>
#include <hpcai/metrics/step_statistics.hpp>
#include <hpcai/plan/pipeline.hpp>
#include <hpcai/prediction/all_reduce_options.hpp>
#include <hpcai/verification/derive.hpp>

namespace hpcai::verification {
namespace {

/// The greatest or least of what groups have, else the last reason why they have none.
class Extreme {
public:
    explicit Extreme(bool is_greatest) : is_greatest_(is_greatest) {}
    void add(const Quantity& one) {
        if (!one.value) {
            if (!one.reason.empty()) reason_ = one.reason;
        } else if (!value_ || (is_greatest_ ? *one.value > *value_ : *one.value < *value_)) {
            value_ = one.value;
        }
    }
    Quantity quantity() const { return or_reason(value_, reason_); }

private:
    bool is_greatest_;
    std::optional<double> value_;
    std::string reason_ = "no group finished";
};

Quantity per_step(const GroupRecord& record) {
    const Quantity& seconds = record.communication_seconds;
    if (!seconds.value || record.iterations == 0) return {std::nullopt, seconds.reason};
    return {*seconds.value / static_cast<double>(record.iterations), ""};
}

/// The grid or the nodes that sums go by; of nodes that of the first rank, the most of all groups.
void derive_places(const config::CommunicationConfig& settings,
                   const plan::ParallelismController& controller,
                   CommunicationRecord& communication) {
    communication.torus_columns = communication.ranks_per_node =
        nothing("communication.algorithm is " + communication.algorithm);
    const plan::Layout& layout = controller.layout();
    if (layout.data_degree() == 1) {
        communication.torus_columns = communication.ranks_per_node = nothing("nothing was summed");
        return;
    }
    double most = 0;
    for (int group = 0; group < layout.groups; ++group) {
        const comm::AllReduceTopology place =
            comm::place_in_sum(prediction::all_reduce_options(settings, controller, group), 0);
        most = std::max(most, static_cast<double>(place.inner.size()));
    }
    using config::AllReduceAlgorithm;
    if (settings.algorithm == AllReduceAlgorithm::torus_2d)
        communication.torus_columns = {most, ""};
    if (settings.algorithm == AllReduceAlgorithm::hierarchical) {
        communication.ranks_per_node = {most, ""};
    }
}

}  // namespace

void derive_communication(const config::Config& config,
                          const plan::ParallelismController& controller,
                          const std::vector<GroupResult>& groups, RunRecord& record) {
    CommunicationRecord& communication = record.communication;
    communication = {};
    std::set<std::string> backends;
    communication.algorithm = config::value_text(config, "communication.algorithm");
    communication.precision = config::value_text(config, "communication.precision");
    communication.statistics_ranks = plan::statistics_ranks(config.training, controller.layout());
    derive_places(config.communication, controller, communication);
    Extreme exposed(true), step(true), sent(true), between(true), out_of_node(true),
        bandwidth(false), statistics(true);
    for (const GroupResult& group : groups) {
        communication.gradient_bytes = std::max(communication.gradient_bytes, group.gradient_bytes);
        communication.buckets = std::max(communication.buckets, group.buckets);
        if (!group.sum_backend.empty()) backends.insert(group.sum_backend);
        sent.add(group.sent_bytes_per_step);
        exposed.add(group.record.communication_seconds);
        step.add(per_step(group.record));
        bandwidth.add(group.bandwidth_bytes_per_second);
        between.add(group.between_nodes_bytes_per_step);
        out_of_node.add(group.out_of_node_bytes_per_step);
        statistics.add(group.statistics_seconds);
        communication.statistics_sums_per_step =
            std::max(communication.statistics_sums_per_step, group.statistics_sums_per_step);
        communication.statistics_bytes_per_step =
            std::max(communication.statistics_bytes_per_step, group.statistics_bytes_per_step);
    }
    communication.backend =
        backends.empty() ? "none" : fmt::format("{}", fmt::join(backends, " and "));
    communication.exposed_seconds = exposed.quantity();
    communication.exposed_seconds_per_step = step.quantity();
    communication.bandwidth_bytes_per_second = bandwidth.quantity();
    communication.sent_bytes_per_step = sent.quantity();
    communication.between_nodes_bytes_per_step = between.quantity();
    communication.out_of_node_bytes_per_step = out_of_node.quantity();
    communication.statistics_seconds = statistics.quantity();
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
    const Quantity one_stage{std::nullopt, "the model is in one stage"};
    parallel.bubble_fraction = parallel.message_wait_seconds = one_stage;
    parallel.part_wait_seconds = {std::nullopt, "the layers are in one part"};
    Extreme message_wait(true), part_wait(true);
    for (const GroupResult& group : groups) {
        message_wait.add(group.message_wait_seconds);
        part_wait.add(group.part_wait_seconds);
        if (layout.stages > 1) {
            parallel.message_bytes_per_step =
                std::max(parallel.message_bytes_per_step, group.message_bytes_per_step);
        }
        parallel.part_bytes_per_step =
            std::max(parallel.part_bytes_per_step, group.part_bytes_per_step);
    }
    if (layout.parts > 1) parallel.part_wait_seconds = part_wait.quantity();
    if (layout.stages == 1) return;
    parallel.bubble_fraction = {plan::bubble_fraction(layout.stages, layout.micro_batches), ""};
    parallel.message_wait_seconds = message_wait.quantity();
}

void derive_time_breakdown(RunRecord& record) {
    std::vector<TimeBreakdownRecord> groups;
    for (const GroupRecord& group : record.work.groups) {
        if (group.failure.empty()) groups.push_back(group.time_breakdown);
    }
    record.time_breakdown = metrics::largest(groups, "no group finished");
}

}  // namespace hpcai::verification
