// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <hpcai/records/run_record.hpp>

/// The ranking table: that of the benchmark's page of 2020 (rank, source, VFLOPS, time, quality,
/// accelerators, framework) with the level.
namespace hpcai::verification {

/// A result that somebody handed in.
struct Submission {
    std::string directory;
    RunRecord record;
    bool is_verified = false;
    std::string manifest;  // SHA-256 of its manifest
    int runs = 1;          // of which `record` is the median one by VFLOPS
    int others = 0;        // runs beside these that do not count
};

struct RankingRow {
    int rank = 0;        // from 1; of equal VFLOPS the same; 0: not rankable
    std::string source;  // system and organization, or the run's name
    std::string run;     // its name
    std::string system;
    std::string organization;
    std::string verdict;
    Quantity vflops;
    Quantity minutes;  // of training, the longest of all groups
    Quantity quality;  // of the ensemble
    std::string accelerators;
    std::string framework;
    std::string level;
    std::string manifest;
    std::string note;  // why it is not ranked, and whether it was verified
};

/// Results of one workload; workloads are never ranked against each other.
struct Ranking {
    std::string workload;
    std::string metric;
    std::vector<RankingRow> rows;  // ranked ones by falling VFLOPS, then the others by name
};

/// One for each workload among the `submissions`, by name. What was not verified has no rank.
/// Throws Error(usage) where two are the same result.
std::vector<Ranking> rank(const std::vector<Submission>& submissions);

std::string to_text(const std::vector<Ranking>& rankings);

/// RFC 4180, with a header; numbers with all digits, empty where there is none. A text that a
/// spreadsheet would take for a formula gets an apostrophe in front.
std::string to_csv(const std::vector<Ranking>& rankings);

/// One page without any other file.
std::string to_html(const std::vector<Ranking>& rankings);

}  // namespace hpcai::verification
