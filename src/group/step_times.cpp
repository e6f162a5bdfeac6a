// SPDX-License-Identifier: Apache-2.0
#include "step_times.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include <hpcai/base/process.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/metrics/step_statistics.hpp>
#include <hpcai/report/trace_json.hpp>

namespace hpcai::group {
namespace {

constexpr std::size_t kClockReadings = 9;

constexpr double RankRecord::*kRankNumbers[] = {
    &RankRecord::median_step_seconds, &RankRecord::p99_step_seconds,
    &RankRecord::longest_step_seconds, &RankRecord::overlapped_communication,
    &RankRecord::peak_memory_bytes};
using Message = std::array<double, std::size(kRankNumbers) + std::size(metrics::kPhaseSpreads) + 1>;

Message pack(const RankRecord& record) {
    Message message{};
    std::size_t at = 0;
    for (double RankRecord::*number : kRankNumbers) message[at++] = record.*number;
    for (const auto& row : metrics::kPhaseSpreads) message[at++] = record.mean.*row.phase;
    message[at] = static_cast<double>(record.steps);
    return message;
}

RankRecord unpack(const Message& message) {
    RankRecord record;
    std::size_t at = 0;
    for (double RankRecord::*number : kRankNumbers) record.*number = message[at++];
    for (const auto& row : metrics::kPhaseSpreads) record.mean.*row.phase = message[at++];
    record.steps = static_cast<std::int64_t>(message[at]);
    return record;
}

std::vector<RankRecord> gather_ranks(const context::RunContext& context, comm::Communicator& group,
                                     const RankRecord& mine) {
    std::vector<RankRecord> ranks;
    for (const Message& message : comm::all_gather(group, pack(mine))) {
        RankRecord& rank = ranks.emplace_back(unpack(message));
        rank.group_rank = static_cast<int>(std::ssize(ranks)) - 1;
        rank.world_rank = context.controller.world_rank_of(context.place.group, rank.group_rank);
        rank.host = context.host(rank.world_rank);
    }
    return ranks;
}

metrics::UnknownReasons reasons_of(const context::RunContext& context,
                                   const training::StepLog& steps,
                                   const Quantity& overlapped_seconds) {
    metrics::UnknownReasons reasons;
    reasons.overlapped_communication = overlapped_seconds.value
                                           ? "another rank of the group has no measured value"
                                           : overlapped_seconds.reason;
    if (!context.config.run.measure_phases) {
        reasons.phases = reasons.host_phases = "run.measure_phases is false";
    } else if (steps.is_asynchronous()) {
        reasons.phases = "no CUDA graph was replayed, which timing on the GPU requires";
        reasons.host_phases = "the host's clock does not show when a GPU waits";
    }
    return reasons;
}

/// Returns the leader's clock minus this rank's clock, in seconds: the median over several
/// barriers, right after which all ranks read their clocks.
double offset_to_leader(comm::Communicator& group, const std::function<double()>& now) {
    std::array<double, kClockReadings> mine{};
    for (double& reading : mine) {
        group.barrier();
        reading = now();
    }
    const auto leader = comm::all_gather(group, mine).front();
    std::array<double, kClockReadings> offsets{};
    std::ranges::transform(leader, mine, offsets.begin(), std::minus<>());
    std::ranges::sort(offsets);
    return offsets[kClockReadings / 2];
}

/// Returns the text of trace.json at the leader. Collective.
std::string gather_trace(const context::RunContext& context, comm::Communicator& group,
                         const training::StepLog& steps) {
    RankTrace trace;
    trace.group_rank = group.rank();
    trace.world_rank = context.place.world_rank;
    trace.host = context.host();
    trace.events = steps.trace().events();
    const std::string mine =
        report::trace_events(trace, offset_to_leader(group, [&] { return steps.now(); }));
    const std::vector<std::string> all = comm::gather_strings(group, mine);
    return group.rank() == 0 ? report::trace_json(all) : "";
}

}  // namespace

training::StepLog make_step_log(const config::RunConfig& run, device::Device& device,
                                const TrainingClock& clock, training::FlightRecorder& flight) {
    return {{.now = [&clock] { return clock.seconds(); },
             .measure_phases = run.measure_phases,
             .trace_steps = run.trace ? run.trace_steps : 0,
             .flight = &flight},
            device};
}

StepTimes gather_step_times(const context::RunContext& context, comm::Communicator& group,
                            const training::StepLog& steps, const Quantity& overlapped_seconds) {
    StepTimes times;
    RankRecord mine = metrics::summarize(steps.steps(), steps.step_seconds());
    mine.overlapped_communication = overlapped_seconds.value.value_or(PhaseSeconds::kUnknown);
    mine.peak_memory_bytes = peak_resident_bytes().value_or(PhaseSeconds::kUnknown);
    times.ranks = gather_ranks(context, group, mine);
    std::vector<int> stages;
    for (int rank = 0; rank < group.size(); ++rank) {
        stages.push_back(context.controller.layout().stage_of(rank));
    }
    times.breakdown = metrics::break_down(context.place.group, times.ranks, stages,
                                          reasons_of(context, steps, overlapped_seconds));
    if (context.config.run.trace) times.trace = gather_trace(context, group, steps);
    return times;
}

}  // namespace hpcai::group
