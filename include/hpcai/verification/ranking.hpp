// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include <hpcai/records/repetitions_record.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/verification/verify.hpp>

/// The ranking table has the columns of the benchmark's web page of 2020 (rank, source, VFLOPS,
/// time, quality, accelerators, framework) and others.
namespace hpcai::verification {

/// A submitted result: one run, or repeated runs.
struct Submission {
    std::string directory;
    RunRecord record;  // of the run; of repeated runs, the one that median_run() chooses
    bool is_verified = false;
    std::string manifest;  // SHA-256 of the manifest of that run
    // Runs with VFLOPS in which all groups finished; in problem class mini, only VALID ones
    int counted_runs = 1;
    int uncounted_runs = 0;  // other runs
    std::string report;      // path of report.html of that run, for links; empty: none
    std::string incomplete;  // why repeated runs are missing; empty: none is missing
};

inline constexpr const char* kSearchKind = "architecture_search";

struct RankingRow {
    Submission submission;
    int rank = 0;        // from 1, equal for equal scores; 0: not rankable
    std::string source;  // system and organization, or the run's name
    Quantity minutes;    // training time of the slowest group
    std::string accelerators;
    std::string note;  // why the result has no rank, how many runs it has, whether it is verified
};

/// The ranking of one problem, which is a workload in one problem class.
struct Ranking {
    std::string workload;  // "image_classification", "image_classification-mini"
    std::string metric;
    std::vector<RankingRow> rows;  // rows with a rank first; by descending score, then name
};

/// Returns the index of the repeated run with the median score, as report::median_repetition().
/// `runs` are in the order of the `record`.
std::size_t median_run(RepetitionsRecord record, std::span<const Verification> runs);

/// Returns a ranking for each problem of the `submissions`, sorted by name. A result has a rank if
/// its verdict is rankable, it has a score and it is verified. The score is VFLOPS; for a search,
/// it is `regulated` (docs/ARCHITECTURE_SEARCH.md). A result of problem class mini also needs at
/// least three runs, all VALID.
std::vector<Ranking> rank(const std::vector<Submission>& submissions);

std::string to_text(const std::vector<Ranking>& rankings);

/// Returns the rows of to_json() as CSV.
std::string to_csv(const std::vector<Ranking>& rankings);

/// Returns an array with an object per row. Its keys are the columns of to_csv(); a missing number
/// is null.
std::string to_json(const std::vector<Ranking>& rankings);

/// Returns an HTML page in the style of report.html, with links to the reports.
std::string to_html(const std::vector<Ranking>& rankings);

}  // namespace hpcai::verification
