// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include <fmt/core.h>

#include <hpcai/base/text.hpp>
#include <hpcai/report/record_text.hpp>
#include <hpcai/verification/ranking.hpp>

namespace hpcai::verification {
namespace {

constexpr int kMiniRuns = 3;  // required of a result of problem class mini

/// Returns "NVIDIA H100 * 8": the ranks by device, with one accelerator each. A comma separates the
/// name of a device from its software.
std::string accelerators_of(const RunRecord& record) {
    std::map<std::string, int> counts;
    for (const PlaceRecord& place : record.topology.map) {
        ++counts[place.device.substr(0, place.device.find(','))];
    }
    std::string text;
    for (const auto& [device, count] : counts) {
        text += fmt::format("{}{} * {}", text.empty() ? "" : " + ", device, count);
    }
    return text.empty() ? fmt::format("{} ranks", record.topology.ranks) : text;
}

/// Returns "System, Organization" as far as they are given, else the name of the run.
std::string source_of(const RunRecord& record) {
    const SubmissionRecord& by = record.submission;
    if (by.system_name.empty() || by.organization.empty()) {
        const std::string one = by.system_name + by.organization;
        return one.empty() ? record.name : one;
    }
    return fmt::format("{}, {}", by.system_name, by.organization);
}

/// A run that is not VALID could move the median.
bool has_runs(const Submission& submission) {
    return submission.record.workload.problem_class != "mini" ||
           (submission.runs >= kMiniRuns && submission.others == 0);
}

RankingRow row_of(const Submission& submission) {
    const RunRecord& record = submission.record;
    RankingRow row;
    row.source = source_of(record);
    row.run = record.name;
    row.system = record.submission.system_name;
    row.organization = record.submission.organization;
    row.verdict = word_of(record.verdict.status);
    row.vflops = record.scores.vflops;
    row.minutes = record.time.training_seconds;
    if (row.minutes.value) *row.minutes.value /= 60;
    row.quality = record.quality.ensemble;
    row.accelerators = accelerators_of(record);
    row.framework = "hpcai500 " + record.program_version;
    row.level = record.workload.level;
    row.manifest = submission.manifest;
    if (!record.verdict.rankable && !record.verdict.reasons.empty()) {
        row.note = record.verdict.reasons.front();
    }
    const auto note = [&](const std::string& text) {
        row.note += (row.note.empty() ? "" : "; ") + text;
    };
    const int all = submission.runs + submission.others;
    if (submission.others > 0) {
        note(fmt::format("median of {} of {} runs", submission.runs, all));
    } else if (all > 1) {
        note(fmt::format("median of {} runs", all));
    }
    if (!has_runs(submission))
        note(fmt::format("the rules require {} runs, all of them VALID", kMiniRuns));
    if (!submission.is_verified) note("not verified");
    return row;
}

bool is_rankable(const Submission& submission) {
    return submission.is_verified && submission.record.verdict.rankable && has_runs(submission) &&
           submission.record.scores.vflops.value;
}

Ranking rank_problem(std::vector<const Submission*> submissions) {
    const auto by_name = [](const Submission* one) { return one->record.name; };
    std::ranges::stable_sort(submissions, {}, by_name);
    std::ranges::stable_sort(submissions, [](const Submission* one, const Submission* other) {
        if (is_rankable(*one) != is_rankable(*other)) return is_rankable(*one);
        return is_rankable(*one) &&
               *one->record.scores.vflops.value > *other->record.scores.vflops.value;
    });
    const RunRecord& first = submissions.front()->record;
    Ranking ranking{report::problem_name(first.workload), metric_name(first.quality.metric), {}};
    for (const Submission* submission : submissions) {
        RankingRow row = row_of(*submission);
        if (is_rankable(*submission)) {
            const bool is_equal =
                !ranking.rows.empty() && ranking.rows.back().vflops.value == row.vflops.value;
            row.rank =
                is_equal ? ranking.rows.back().rank : static_cast<int>(ranking.rows.size()) + 1;
        }
        ranking.rows.push_back(std::move(row));
    }
    return ranking;
}

}  // namespace

std::vector<Ranking> rank(const std::vector<Submission>& submissions) {
    std::map<std::string, std::vector<const Submission*>> by_problem;
    std::map<std::string, std::string> seen;
    for (const Submission& one : submissions) {
        const auto [first, is_new] = seen.emplace(one.manifest, one.directory);
        require(is_new || one.manifest.empty(), ExitCode::usage,
                "rank: {} and {} are the same result: manifest {}", printable(first->second),
                printable(one.directory), one.manifest);
        by_problem[report::problem_name(one.record.workload)].push_back(&one);
    }
    std::vector<Ranking> rankings;
    for (const auto& [problem, some] : by_problem) rankings.push_back(rank_problem(some));
    return rankings;
}

}  // namespace hpcai::verification
