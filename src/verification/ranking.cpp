// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include <hpcai/base/units.hpp>
#include <hpcai/report/record_text.hpp>
#include <hpcai/report/repetitions.hpp>
#include <hpcai/verification/ranking.hpp>

namespace hpcai::verification {
namespace {

/// Returns "NVIDIA H100 * 8": the number of ranks with each device. In a device's description, the
/// name ends at the first comma.
std::string accelerators_of(const RunRecord& record) {
    std::map<std::string, int> counts;
    for (const PlaceRecord& place : record.topology.map)
        ++counts[place.device.substr(0, place.device.find(','))];
    std::string text;
    for (const auto& [device, count] : counts) {
        text += fmt::format("{}{} * {}", text.empty() ? "" : " + ", device, count);
    }
    return text.empty() ? counted(record.topology.ranks, "rank") : text;
}

/// Returns "System, Organization", else the only one that is not empty, else the name of the run.
std::string source_of(const RunRecord& record) {
    const SubmissionRecord& submission = record.submission;
    if (submission.system_name.empty() || submission.organization.empty()) {
        const std::string name = submission.system_name + submission.organization;
        return name.empty() ? record.name : name;
    }
    return fmt::format("{}, {}", submission.system_name, submission.organization);
}

/// Returns false if a result of problem class mini has too few counted runs, or uncounted runs,
/// which could have changed the median.
bool has_required_runs(const Submission& submission) {
    return submission.record.workload.problem_class != "mini" ||
           (submission.counted_runs >= report::kMiniRuns && submission.uncounted_runs == 0);
}

RankingRow row_of(const Submission& submission) {
    const RunRecord& record = submission.record;
    RankingRow row;
    row.submission = submission;
    row.source = source_of(record);
    row.minutes = record.time.training_seconds;
    if (row.minutes.value) *row.minutes.value /= 60;
    row.accelerators = accelerators_of(record);
    if (!record.verdict.rankable && !record.verdict.reasons.empty())
        row.note = record.verdict.reasons.front();
    const auto note = [&](const std::string& text) {
        row.note += (row.note.empty() ? "" : "; ") + text;
    };
    const int all = submission.counted_runs + submission.uncounted_runs;
    if (submission.uncounted_runs > 0) {
        note(fmt::format("median of {} of {}", submission.counted_runs, counted(all, "run")));
    } else if (all > 1) {
        note(fmt::format("median of {} runs", all));
    }
    if (!has_required_runs(submission))
        note(fmt::format("the rules require {} runs, all of them VALID", report::kMiniRuns));
    if (!submission.incomplete.empty()) note(submission.incomplete);
    if (!submission.is_verified) note("not verified");
    return row;
}

/// Returns the number that orders a ranking: SearchRecord::regulated of a search, else VFLOPS.
std::optional<double> score_of(const Submission* submission) {
    const RunRecord& record = submission->record;
    if (record.workload.kind != kSearchKind) return record.scores.vflops.value;
    return record.search ? std::optional(record.search->regulated) : std::nullopt;
}

bool is_rankable(const Submission& submission) {
    return submission.is_verified && submission.record.verdict.rankable &&
           has_required_runs(submission) && score_of(&submission);
}

Ranking rank_problem(std::vector<const Submission*> submissions) {
    const auto by_name = [](const Submission* a) { return a->record.name; };
    std::ranges::stable_sort(submissions, {}, by_name);
    std::ranges::stable_sort(submissions, std::ranges::greater{}, [](const Submission* a) {
        return std::pair{is_rankable(*a), score_of(a)};
    });
    const RunRecord& first = submissions.front()->record;
    Ranking ranking{report::problem_name(first.workload), metric_name(first.quality.metric), {}};
    for (const Submission* submission : submissions) {
        RankingRow row = row_of(*submission);
        if (is_rankable(*submission)) {
            const bool is_equal = !ranking.rows.empty() &&
                                  score_of(&ranking.rows.back().submission) == score_of(submission);
            row.rank =
                is_equal ? ranking.rows.back().rank : static_cast<int>(ranking.rows.size()) + 1;
        }
        ranking.rows.push_back(std::move(row));
    }
    return ranking;
}

}  // namespace

std::size_t median_run(RepetitionsRecord record, std::span<const Verification> runs) {
    const std::size_t count = std::min(record.repetitions.size(), runs.size());
    for (std::size_t run = 0; run < count; ++run) {
        const auto& stored = runs[run].record;
        std::optional<double>& score = record.repetitions[run].vflops.value;
        if (score && stored && stored->search) score = stored->search->regulated;
    }
    return report::median_repetition(record);
}

std::vector<Ranking> rank(const std::vector<Submission>& submissions) {
    std::map<std::string, std::vector<const Submission*>> by_problem;
    for (const Submission& submission : submissions)
        by_problem[report::problem_name(submission.record.workload)].push_back(&submission);
    std::vector<Ranking> rankings;
    for (const auto& [problem, rows] : by_problem) rankings.push_back(rank_problem(rows));
    return rankings;
}

}  // namespace hpcai::verification
