// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <hpcai/records/step_record.hpp>

#include "checks.hpp"

/// What the steps of a group that finished must be by its configuration, and what the other clocks
/// of the group must be by its steps. Each function finds the first thing of a kind that is not.
namespace hpcai::verification {

/// One group's files, by their names in the result.
struct GroupFiles {
    std::string record;
    std::string steps;
    std::string ranks;
};

/// Samples and epoch of each step, and phases against its length; `record.samples_drawn` is right.
void check_steps(const Claim& claim, const GroupRecord& record,
                 const std::vector<StepRecord>& steps, const GroupFiles& files,
                 Inspector& inspector);

/// record.epoch_seconds, which another clock has measured.
void check_epochs(const config::Config& config, const GroupRecord& record,
                  const std::vector<StepRecord>& steps, const GroupFiles& files,
                  Inspector& inspector);

/// `leader` is the row of the rank that has stored the steps.
void check_leader(const RankRecord& leader, const std::vector<StepRecord>& steps,
                  const GroupFiles& files, Inspector& inspector);

}  // namespace hpcai::verification
