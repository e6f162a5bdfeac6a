// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <hpcai/config/config.hpp>
#include <hpcai/records/run_record.hpp>

namespace hpcai::verification {

/// The facts that determine the verdict, together with the configuration.
struct VerdictFacts {
    std::int64_t training_samples = 0;  // with the hold-out of a search
    std::int64_t validation_samples = 0;
    std::int64_t bad_samples = 0;
    std::string samples_sha256;                  // of the data, as in LaunchRecord
    std::vector<std::string> disqualifications;  // of the data, from data::SampleSets
    std::optional<double> best_accuracy;         // of a search on its hold-out, if it has ended
    bool has_score = false;                      // FLOPS, quality and VFLOPS are numbers
    std::vector<std::string> failures;  // "group 1: why", for each group that did not finish
    int groups = 0;
    std::vector<std::string> not_rankable;  // why a valid result is not rankable
    std::vector<ExitCode> failure_codes;  // of failed groups; ExitCode::invalid: replicas diverged
    int watched_gpus = 0;                 // entries in device_health of the finished groups
    std::vector<std::string> gpu_errors;  // "rank 3 on node02: Xid 79", for each GPU with errors
};

/// Returns the messages of the broken rules 1 to 7 and 9 of docs/RULES.md; none at level custom.
/// With run.repeat, returns those of the first of the runs that break the most rules.
std::vector<std::string> broken_rules(const config::Config& config, const VerdictFacts& facts);

/// Returns the SHA-256 that rule 1 requires of the samples; empty if it requires none.
std::string required_samples_sha256(const config::WorkloadConfig& workload);

/// Returns the number of training samples of a problem whose samples the rules fix; else nothing.
std::optional<std::int64_t> required_training_samples(const config::Config& config);

/// Returns the messages of the rules that the configuration breaks. Assumes that the data, which a
/// launch must read first, satisfy the rules.
std::vector<std::string> rules_broken_by_settings(const config::Config& config);

/// Returns the first verdict of docs/RULES.md that applies: INVALID without a score or if a rule is
/// broken, PARTIAL if a group failed, CUSTOM at run.level custom, otherwise VALID. Rule 8 (equal
/// replicas) and, if GPUs were watched, rule 10 (GPU errors) apply at every level.
VerdictRecord make_verdict(const config::Config& config, const VerdictFacts& facts);

/// Returns the section `submission` of the configuration and its missing keys: those other than
/// `contact` that are empty or blank.
SubmissionRecord describe_submission(const config::Config& config);

/// Returns why a VALID run is not rankable: the missing keys of `submission`. Empty if no key is
/// missing, and at run.level custom, which is never ranked.
std::string describe_missing_submission(const config::Config& config);

/// Returns describe_missing_submission() and, in problem class mini, that run.repeat is too small.
std::string describe_missing_for_rank(const config::Config& config);

/// Returns why a resumed run is not rankable; empty at run.level custom.
std::string describe_resumed(const config::Config& config);

}  // namespace hpcai::verification
