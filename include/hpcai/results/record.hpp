// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <hpcai/comm/membership_agreement.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/records/launch_record.hpp>
#include <hpcai/records/run_record.hpp>

namespace hpcai::results {

/// What is known of a run before its ranks train, on each rank or from the files of the run.
struct LaunchedRun {
    const context::RunContext& context;
    const LaunchRecord& launch;
    const data::SampleSets& samples;
};

/// The quality of the ensemble and the results of its members.
struct EnsembleScore {
    std::vector<GroupResult> members;  // of the groups that finished, in order
    QualityRecord quality;             // of the ensemble, if it has members
    double seconds = 0;                // that the vote took
};

/// How a run ended.
struct Closing {
    const std::vector<comm::GroupStatus>& groups;  // all M
    Quantity startup_seconds;                      // with staging
    Quantity total_seconds;
};

/// Describes where the ranks of a run are.
TopologyRecord describe_topology(const context::RunContext& context);

/// Makes the record of the run, score and verdict included. `ensemble` has no members when no group
/// finished.
RunRecord make_record(const LaunchedRun& run, const EnsembleScore& ensemble,
                      const Closing& closing);

}  // namespace hpcai::results
