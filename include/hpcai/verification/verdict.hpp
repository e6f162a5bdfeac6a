// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <hpcai/config/config.hpp>
#include <hpcai/records/run_record.hpp>

namespace hpcai::verification {

/// What the verdict is made from, beside the configuration.
struct VerdictFacts {
    std::int64_t training_samples = 0;
    std::int64_t validation_samples = 0;
    std::int64_t bad_samples = 0;
    std::vector<std::string> objections;  // to the data (data::SampleSets)
    bool has_score = false;               // FLOPS, quality and VFLOPS are numbers
    std::vector<std::string> failures;    // "group 1: why", one for each group that did not finish
    int groups = 0;
    bool went_on = false;                 // a group was trained by several programs
    std::vector<ExitCode> failure_codes;  // of the failures; invalid: its replicas diverged
    int watched_gpus = 0;                 // of the groups that finished
    std::vector<std::string> gpu_errors;  // "rank 3 on node02: Xid 79", one for each GPU with some
};

/// What to say of each rule 1 to 7 and 9 that run.level has and that is broken; none at level
/// custom.
std::vector<std::string> broken_rules(const config::Config& config, const VerdictFacts& facts);

/// Those that are broken whatever the data are.
std::vector<std::string> rules_broken_by_settings(const config::Config& config);

/// The rules of docs/RULES.md. Any data set, target or epoch count runs: at run.level custom the
/// result is CUSTOM; at a rankable level a broken rule makes it INVALID, with the rule's number,
/// and so do diverged replicas' rule 8 and, where GPUs were watched, their rule 10 at every level.
VerdictRecord judge(const config::Config& config, const VerdictFacts& facts);

/// Who hands the result in and the nine layers of the system, as the configuration's section
/// `submission` tells, and which of its keys a ranking needs but lacks: all but `contact`. What
/// has blanks only is lacking.
SubmissionRecord describe_submission(const config::Config& config);

/// Why a VALID run is not rankable, with the keys that are lacking; empty where none is, and at
/// run.level custom, which nobody ranks.
std::string what_submission_lacks(const config::Config& config);

}  // namespace hpcai::verification
