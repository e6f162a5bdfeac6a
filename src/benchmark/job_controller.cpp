// SPDX-License-Identifier: Apache-2.0
#include "job_controller.hpp"

#include <algorithm>
#include <ostream>

#include <nlohmann/json.hpp>

#include <hpcai/report/json.hpp>
#include <hpcai/report/summary.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/manifest.hpp>
#include <hpcai/storage/npy.hpp>

#include "record.hpp"

namespace hpcai::benchmark {
namespace {

void write_evaluation(const Start& start, const Vote& vote) {
    const auto directory = start.output / "evaluation";
    const auto samples = static_cast<std::int64_t>(vote.labels.size());
    storage::write_npy(directory / "ensemble.npy", std::span<const float>(vote.probabilities),
                       {samples, start.config.workload.classes});
    storage::write_npy(directory / "labels.npy", std::span<const std::int32_t>(vote.labels),
                       {samples});
    std::string names;
    for (std::int64_t sample = 0; sample < samples; ++sample) {
        names += start.samples.validation->name(static_cast<std::uint32_t>(sample)) + "\n";
    }
    storage::write_file_durably(directory / "samples.txt", names);
}

}  // namespace

ExitCode JobController::finish(const GroupOutcome& mine, Logger& log, std::ostream& out) {
    const int group = start_.place.group;
    if (start_.place.group_rank != 0) {
        const double seconds = patience_seconds(mine) * (start_.controller.layout().groups + 1);
        world_.await_release(start_.controller.leader(group), seconds);
        return ExitCode::ok;
    }
    ExitCode code = ExitCode::internal;
    try {
        code = lead(mine, log, out);
    } catch (const Error& error) {
        log.error("{}", error.what());
        code = error.code();
    }
    std::vector<int> others;
    for (int rank = 1; rank < start_.controller.layout().degree; ++rank) {
        others.push_back(start_.controller.world_rank_of(group, rank));
    }
    world_.release(others);
    return code;
}

/// Groups differ by the size of their bootstrap and the speed of their nodes; one that takes half
/// as long again as this one is given up.
double JobController::patience_seconds(const GroupOutcome& mine) const {
    constexpr double kLeastSeconds = 600;
    const double seconds = mine.result.record.training_seconds.value.value_or(0);
    return std::max(kLeastSeconds, 0.5 * seconds);
}

ExitCode JobController::lead(const GroupOutcome& mine, Logger& log, std::ostream& out) {
    std::vector<int> leaders;
    for (int group = 0; group < start_.controller.layout().groups; ++group) {
        leaders.push_back(start_.controller.leader(group));
    }
    comm::EndGameDeadlines deadlines;
    deadlines.status_seconds = patience_seconds(mine);
    const comm::Ballot ballot = world_.hold_vote(mine.status, leaders, deadlines);
    if (!ballot.decision.agreed) {
        log.error(
            "group {} is on its own: the other leaders are silent or went on without it; "
            "its predictions are stored",
            start_.place.group);
        return ExitCode::partial;
    }
    if (ballot.leaders != nullptr) {
        const Vote vote = hold_vote(start_, mine, *ballot.leaders);
        return ballot.leaders->rank() == 0 ? write_result(ballot, vote, out) : ExitCode::ok;
    }
    return ballot.decision.writer() == start_.place.group ? write_result(ballot, {}, out)
                                                          : ExitCode::ok;
}

ExitCode JobController::write_result(const comm::Ballot& ballot, const Vote& vote,
                                     std::ostream& out) {
    const std::vector<comm::GroupStatus> groups = ballot.decision.statuses();
    const Closing closing{request_, groups, startup_seconds_, since_start_.seconds()};
    const RunRecord record = make_record(start_, vote, closing);
    if (!vote.members.empty()) write_evaluation(start_, vote);
    const std::string summary = report::summary(record);
    storage::write_file_durably(start_.output / "environment.json",
                                nlohmann::json(record.environment).dump(2) + "\n");
    storage::write_file_durably(start_.output / "summary.txt", summary);
    storage::write_file_durably(start_.output / "result.json", report::to_json(record));
    storage::write_manifest(start_.output);
    out << summary << std::flush;
    return record.verdict.exit_code;
}

}  // namespace hpcai::benchmark
