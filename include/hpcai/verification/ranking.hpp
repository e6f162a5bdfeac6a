// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <hpcai/records/run_record.hpp>

/// The ranking table: the columns of the benchmark's web page of 2020 (rank, source, VFLOPS, time,
/// quality, accelerators, framework) and the level.
namespace hpcai::verification {

/// A submitted result.
struct Submission {
    std::string directory;
    RunRecord record;
    bool is_verified = false;
    std::string manifest;  // SHA-256 of its manifest
    int runs = 1;          // counted runs; `record` is the one with median VFLOPS
    int others = 0;        // runs that do not count
};

struct RankingRow {
    int rank = 0;        // from 1, equal for equal VFLOPS; 0: not rankable
    std::string source;  // system and organization, or the run's name
    std::string run;     // name of the run
    std::string system;
    std::string organization;
    std::string verdict;
    Quantity vflops;
    Quantity minutes;  // training time of the slowest group
    Quantity quality;  // of the ensemble
    std::string accelerators;
    std::string framework;
    std::string level;
    std::string manifest;
    std::string note;  // why it is not ranked, how many runs, whether verified
};

/// The results of one problem: a workload in one problem class. Problems have rankings of their
/// own.
struct Ranking {
    std::string workload;  // "image_classification", "image_classification-mini"
    std::string metric;
    std::vector<RankingRow> rows;  // ranked ones by descending VFLOPS, then unranked ones by name
};

/// Returns a ranking for each problem of the `submissions`, by name. Results that were not
/// verified, and mini results without three runs or with a run that is not VALID, have no rank.
/// Throws Error(usage) if two submissions are the same result.
std::vector<Ranking> rank(const std::vector<Submission>& submissions);

std::string to_text(const std::vector<Ranking>& rankings);

/// Returns CSV by RFC 4180 with a header. Numbers have all digits; a missing one is empty. An
/// apostrophe precedes a text that a spreadsheet would treat as a formula.
std::string to_csv(const std::vector<Ranking>& rankings);

/// Returns a self-contained page.
std::string to_html(const std::vector<Ranking>& rankings);

}  // namespace hpcai::verification
