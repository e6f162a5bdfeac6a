// SPDX-License-Identifier: Apache-2.0
#include "resumable_record.hpp"

#include <array>
#include <limits>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <hpcai/base/text.hpp>
#include <hpcai/comm/all_reduce_traffic.hpp>

namespace hpcai::group {
namespace {

constexpr const char* kCosts = "costs";
constexpr const char* kNoAllReduce = "there is one replica only: no all-reduce";

/// Returns references to all numbers except optional ones, in the order of the checkpoint.
template <typename Costs>
auto numbers_of(Costs& costs) {
    auto& [input_wait_seconds, checkpoint_seconds, buckets, statistics, sent, messages] = costs;
    return std::tie(input_wait_seconds, checkpoint_seconds, buckets.steps, buckets.bytes_reduced,
                    buckets.exposed_seconds, buckets.interleaved_seconds,
                    buckets.overlapped_seconds, buckets.timed_steps, statistics.sums,
                    statistics.bytes, statistics.sent.total, statistics.sent.to_other_nodes,
                    statistics.seconds, messages.steps, messages.bytes_sent, messages.wait_seconds,
                    messages.shards.bytes_sent, messages.shards.wait_seconds);
}

comm::AllReduceSeconds sum_of(const std::optional<comm::AllReduceSeconds>& one,
                              const std::optional<comm::AllReduceSeconds>& other) {
    const comm::AllReduceSeconds first = one.value_or(comm::AllReduceSeconds{});
    const comm::AllReduceSeconds second = other.value_or(comm::AllReduceSeconds{});
    return {first.exposed + second.exposed, first.in_flight + second.in_flight};
}

/// Returns the mean, or no value if a rank has none: shards may use different all-reduces.
Quantity mean_over_ranks(comm::Communicator& group, const Quantity& mine) {
    std::array<double, 2> sums{mine.value.value_or(0), mine.value ? 0.0 : 1.0};
    group.all_reduce_sum(sums);
    if (sums[1] == 0) return {sums[0] / static_cast<double>(group.size()), ""};
    return {std::nullopt, mine.value ? "another shard has no measured value" : mine.reason};
}

/// Returns the exposed time of this rank's all-reduces. If `is_on_device`, the device runs them
/// (NCCL), and its clock times them.
Quantity exposed_seconds(const comm::BucketAccounting& buckets,
                         const comm::SyncBatchNormAccounting& statistics, bool is_on_device) {
    if (!is_on_device) {
        return {buckets.exposed_seconds + buckets.interleaved_seconds + statistics.seconds, ""};
    }
    if (!buckets.timed) return {std::nullopt, "no CUDA graph was replayed"};
    return {buckets.timed->exposed, ""};
}

/// Returns the seconds per step in which this rank's all-reduces overlapped with computation.
Quantity overlapped_seconds_per_step(const comm::BucketAccounting& buckets, int replicas,
                                     bool is_on_device) {
    if (replicas == 1) return {std::nullopt, kNoAllReduce};
    if (!is_on_device) return {buckets.overlapped_seconds / static_cast<double>(buckets.steps), ""};
    if (!buckets.timed) return {std::nullopt, "no CUDA graph was replayed"};
    const double overlapped = buckets.timed->in_flight - buckets.timed->exposed;
    return {std::max(overlapped, 0.0) / static_cast<double>(buckets.timed_steps), ""};
}

Quantity bandwidth_of(const comm::BucketAccounting& buckets, int replicas) {
    if (replicas == 1) return {std::nullopt, kNoAllReduce};
    if (!buckets.timed) return {std::nullopt, "only NCCL in a CUDA graph times its all-reduces"};
    const double bytes = static_cast<double>(buckets.bytes_reduced) *
                         static_cast<double>(buckets.timed_steps) /
                         static_cast<double>(buckets.steps);
    return {bytes / buckets.timed->in_flight, ""};
}

/// Records the bytes sent and the statistics' all-reduces per step, which are equal in all steps.
void record_traffic(const context::RunContext& context, comm::Communicator& group,
                    const comm::GradientReducer& reducer, const TrainingCosts& costs,
                    GroupResult& result) {
    const comm::SyncBatchNormAccounting& statistics = costs.statistics;
    const bool is_known = max_over_ranks(group, costs.sent ? 0 : 1) == 0;
    comm::SentBytes sent = costs.sent.value_or(comm::SentBytes{});
    sent += statistics.sent;
    const comm::AllReduceTraffic bytes = comm::gather_traffic(group, context.place.node, sent);
    if (reducer.size() > 1) result.all_reduce_backend = reducer.backend();
    const auto per_step = [&](std::int64_t comm::AllReduceTraffic::*member) -> Quantity {
        if (!is_known) return {std::nullopt, "a library's all-reduce does not report messages"};
        return {static_cast<double>(bytes.*member / result.record.iterations), ""};
    };
    result.sent_bytes_per_step = per_step(&comm::AllReduceTraffic::sent);
    result.between_nodes_bytes_per_step = per_step(&comm::AllReduceTraffic::between_nodes);
    result.out_of_node_bytes_per_step = per_step(&comm::AllReduceTraffic::out_of_node);
    result.statistics_sums_per_step =
        max_over_ranks(group, statistics.sums / result.record.iterations);
    result.statistics_bytes_per_step =
        max_over_ranks(group, statistics.bytes / result.record.iterations);
    result.statistics_seconds = mean_over_ranks(group, {statistics.seconds, ""});
}

constexpr const char* kEpochs = "epoch_seconds";
constexpr const char* kCurve = "quality_by_epoch";
constexpr const char* kContinuations = "continuations";
constexpr const char* kBadSamples = "bad_samples";
constexpr std::size_t kUtcLength = 20;  // characters of "2022-11-05T14:03:09Z"
constexpr int kMaxEpoch = 65535;        // limit of workload.epochs, so a larger number is damaged

std::string text_of(const std::vector<ContinuationRecord>& continuations) {
    std::string text;
    for (const ContinuationRecord& continuation : continuations) {
        text += fmt::format("{} {}\n", continuation.step, continuation.started_utc);
    }
    return text;
}

std::vector<ContinuationRecord> continuations_of(const training::Snapshot& from) {
    std::vector<ContinuationRecord> found;
    std::string_view text = from.text(kContinuations);
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        const std::size_t space = line.find(' ');
        const auto step = parse_number<std::int64_t>(line.substr(0, space));
        const bool is_valid = space != std::string_view::npos && step.value_or(-1) >= 0 &&
                              line.size() - space - 1 == kUtcLength;
        if (!is_valid) from.fail(kContinuations, "expected lines of a step and a time");
        found.push_back({*step, std::string(line.substr(space + 1))});
    }
    return found;
}

}  // namespace

void TrainingCosts::add(const TrainingCosts& earlier) {
    const auto add_all = [&](auto&... mine) {
        std::apply([&](const auto&... theirs) { ((mine += theirs), ...); }, numbers_of(earlier));
    };
    std::apply(add_all, numbers_of(*this));
    auto& timed = all_reduces.timed;
    if (timed || earlier.all_reduces.timed) timed = sum_of(timed, earlier.all_reduces.timed);
    if (sent && earlier.sent) *sent += *earlier.sent;
}

void TrainingCosts::save(training::Snapshot& to) const {
    const auto to_doubles = [](const auto&... number) {
        return std::vector<double>{static_cast<double>(number)...};
    };
    to.put_numbers(kCosts, std::apply(to_doubles, numbers_of(*this)));
    std::vector<double> timed, sent_bytes;
    if (all_reduces.timed) timed = {all_reduces.timed->exposed, all_reduces.timed->in_flight};
    if (sent) {
        sent_bytes = {static_cast<double>(sent->total), static_cast<double>(sent->to_other_nodes)};
    }
    to.put_numbers("costs.timed", std::move(timed));
    to.put_numbers("costs.gradients", std::move(sent_bytes));
}

TrainingCosts TrainingCosts::from_snapshot(const training::Snapshot& from) {
    TrainingCosts costs;
    const auto all = numbers_of(costs);
    const std::span<const double> stored = from.numbers(kCosts, std::tuple_size_v<decltype(all)>);
    std::size_t at = 0;
    const auto read = [&]<typename Number>(Number& number) {
        if constexpr (std::is_same_v<Number, std::int64_t>) {
            number = from.integer(kCosts, stored[at++], 0, std::int64_t{1} << 53);
        } else {
            number = stored[at++];
        }
    };
    std::apply([&](auto&... number) { (read(number), ...); }, all);
    const std::span<const double> timed = from.table("costs.timed", 2);
    if (!timed.empty()) costs.all_reduces.timed = comm::AllReduceSeconds{timed[0], timed[1]};
    const std::span<const double> sent = from.table("costs.gradients", 2);
    if (!sent.empty()) {
        const auto bytes = [&](double value) {
            return from.integer("costs.gradients", value, 0, std::int64_t{1} << 53);
        };
        costs.sent = comm::SentBytes{bytes(sent[0]), bytes(sent[1])};
    }
    return costs;
}

std::int64_t max_over_ranks(comm::Communicator& group, std::int64_t value) {
    auto largest = static_cast<double>(value);
    group.all_reduce_max(std::span(&largest, 1));
    return static_cast<std::int64_t>(largest);
}

Quantity record_costs(const CostSources& sources, const TrainingCosts& costs, GroupResult& result) {
    const auto& [context, group, replicas, reducer, buckets, gradient_bytes] = sources;
    GroupRecord& record = result.record;
    record.input_wait_seconds = mean_over_ranks(group, {costs.input_wait_seconds, ""});
    // The mean is over all ranks, but only ranks with the first shard of stage 0 read samples.
    *record.input_wait_seconds.value *= context.controller.layout().partitions();
    record.checkpoint_seconds = mean_over_ranks(group, {costs.checkpoint_seconds, ""});
    const bool is_on_device = replicas.size() > 1 && reducer.can_be_recorded();
    record.communication_seconds =
        mean_over_ranks(group, exposed_seconds(costs.all_reduces, costs.statistics, is_on_device));
    result.bandwidth_bytes_per_second = bandwidth_of(costs.all_reduces, replicas.size());
    result.communicated_bytes = max_over_ranks(group, costs.all_reduces.bytes_reduced);
    if (replicas.size() > 1) {
        result.gradient_bytes = max_over_ranks(group, gradient_bytes);
        result.buckets = max_over_ranks(group, buckets);
    }
    record_traffic(context, group, reducer, costs, result);
    if (const training::MessageAccounting& messages = costs.messages; messages.steps > 0) {
        result.message_wait_seconds = mean_over_ranks(group, {messages.wait_seconds, ""});
        result.message_bytes_per_step = max_over_ranks(group, messages.bytes_sent / messages.steps);
        result.shard_wait_seconds = mean_over_ranks(group, {messages.shards.wait_seconds, ""});
        result.shard_bytes_per_step =
            max_over_ranks(group, messages.shards.bytes_sent / messages.steps);
    }
    return overlapped_seconds_per_step(costs.all_reduces, replicas.size(), is_on_device);
}

void ResumableRecord::add(const TrainingCosts& costs) {
    const bool is_first = !earlier_costs_.sent;
    earlier_costs_.add(costs);
    if (is_first) earlier_costs_.sent = costs.sent;
}

TrainingCosts ResumableRecord::costs() const {
    if (!sources_) return earlier_costs_;
    TrainingCosts costs;
    costs.input_wait_seconds = source_.batches().wait_seconds();
    costs.checkpoint_seconds = sources_->checkpoints.delay_seconds();
    costs.all_reduces = sources_->trainer.buckets().accounting();
    costs.statistics = sources_->model.sync_batch_norm_group().accounting();
    costs.sent = sources_->reducer.sent();
    costs.messages = sources_->trainer.messages();
    costs.add(earlier_costs_);
    return costs;
}

ExtraState ResumableRecord::content() {
    return {[this](training::Snapshot& to) { save(to); },
            [this](const training::Snapshot& from) { restore(from); }};
}

void ResumableRecord::save(training::Snapshot& to) const {
    costs().save(to);
    to.put_numbers(kEpochs, record_.epoch_seconds);
    std::vector<double> curve;
    for (const EpochQualityRecord& point : record_.quality_by_epoch) {
        curve.insert(curve.end(),
                     {static_cast<double>(point.epoch), point.training_seconds, point.quality});
    }
    to.put_numbers(kCurve, std::move(curve));
    to.put_text(kContinuations, text_of(record_.continuations));
    const std::vector<std::uint32_t> bad = source_.bad_sample_numbers();
    to.put_numbers(kBadSamples, {bad.begin(), bad.end()});
}

void ResumableRecord::restore(const training::Snapshot& from) {
    const TrainingCosts costs = TrainingCosts::from_snapshot(from);
    const std::span<const double> epochs = from.table(kEpochs, 1);
    std::vector<EpochQualityRecord> curve;
    for (std::span<const double> rows = from.table(kCurve, 3); !rows.empty();
         rows = rows.subspan(3)) {
        curve.push_back(
            {static_cast<int>(from.integer(kCurve, rows[0], 1, kMaxEpoch)), rows[1], rows[2]});
    }
    std::vector<std::uint32_t> bad;
    for (const double number : from.table(kBadSamples, 1)) {
        bad.push_back(static_cast<std::uint32_t>(
            from.integer(kBadSamples, number, 0, std::numeric_limits<std::uint32_t>::max())));
    }
    record_.continuations = continuations_of(from);
    record_.epoch_seconds.assign(epochs.begin(), epochs.end());
    record_.quality_by_epoch = std::move(curve);
    earlier_costs_ = costs;
    source_.restore_bad_samples(bad);
}

}  // namespace hpcai::group
