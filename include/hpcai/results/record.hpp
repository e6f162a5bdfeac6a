// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <hpcai/comm/membership_agreement.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/workloads/evaluator.hpp>

namespace hpcai::results {

/// The facts of a run before training. Every rank has them, and the run's files store them.
struct LaunchedRun {
    const context::RunContext& context;
    const LaunchRecord& launch;
    const data::SampleSets& samples;
};

/// The ensemble of the finished groups.
struct EnsembleResult {
    std::vector<GroupResult> members;  // of the finished groups, in order
    workloads::EnsemblePredictions predictions;
    QualityRecord quality;  // of the ensemble, if it has members
    double seconds = 0;     // duration of the vote
};

/// How a run ended.
struct RunOutcome {
    const std::vector<comm::GroupStatus>& groups;  // of all M groups
    Quantity startup_seconds;                      // includes staging
    Quantity total_seconds;
};

TopologyRecord describe_topology(const context::RunContext& context);

/// Makes the run's record with score and verdict. `ensemble` has no members if no group finished.
RunRecord make_record(const LaunchedRun& run, const EnsembleResult& ensemble,
                      const RunOutcome& outcome);

}  // namespace hpcai::results
