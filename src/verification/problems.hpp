// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include <hpcai/config/config.hpp>

namespace hpcai::verification {

/// A key whose value the rules 1 to 4 fix.
struct FixedSetting {
    int rule;
    const char* key;
    const char* value;
};

/// A problem that runs are ranked in, by docs/RULES.md.
struct Problem {
    config::WorkloadKind kind;
    config::ProblemClass problem_class;
    config::DataKind data_kind;
    const char* data_description;
    std::int64_t training_samples;
    std::int64_t validation_samples;
    bool may_have_more_samples = false;
    const char* samples_sha256 = "";  // data::SampleSets::sha256; empty: the rules do not fix it
    std::span<const FixedSetting> settings;
};

/// Returns the problem of a workload; null if it has no rules.
const Problem* find_problem(config::WorkloadKind kind, config::ProblemClass problem_class);

}  // namespace hpcai::verification
