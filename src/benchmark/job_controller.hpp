// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/log.hpp>
#include <hpcai/comm/mpi_world.hpp>
#include <hpcai/group/group_outcome.hpp>
#include <hpcai/results/record.hpp>
#include <hpcai/results/repetitions.hpp>

#include "ensemble_result.hpp"

namespace hpcai::benchmark {

/// The paper's Job Controller, after its jobs have run: finds out which groups finished, lets them
/// vote, scores the run and writes the result directory. One on every rank.
class JobController {
public:
    /// What is given must outlive the object; `since_start` began with the program, or
    /// with its repetition.
    JobController(const results::LaunchedRun& run, comm::MpiWorld& world,
                  const Stopwatch& since_start)
        : run_(run),
          context_(run.context),
          world_(world),
          since_start_(since_start),
          startup_seconds_(since_start.seconds()) {}

    /// Ends this rank's part: returns when the result is whole, as far as this rank takes part in
    /// it. The leader that writes the result then prints the summary to `out`, whether it could
    /// be written or not; its code is the verdict's (behind the last of several runs the worst of
    /// all, before that ok), that of a leader left alone ExitCode::partial or, where its
    /// group has stopped, as below, that of ranks whose
    /// leader is lost ExitCode::watchdog, all others' ok. Where a group has stopped, nobody votes:
    /// it prints how to go on and from which step, and its code is ExitCode::stopped, internal
    /// where a group could not write its checkpoint, or watchdog where groups were `terminated`
    /// beside one that has failed. Every rank hears alike whether another run
    /// follows. Never throws: what goes wrong is told on standard error and becomes the exit code.
    results::RunEnd finish(const group::GroupOutcome& mine, Logger& log, std::ostream& out);

private:
    void wait_until_others_exit(bool speaks);
    results::RunEnd lead(const group::GroupOutcome& mine, Logger& log, std::ostream& out);
    results::RunEnd tell_of_stop(const comm::Ballot& ballot, std::ostream& out) const;
    results::RunEnd vote_and_write(const comm::Ballot& ballot, const group::GroupOutcome& mine,
                                   std::ostream& out);
    results::RunEnd write_result(const comm::Ballot& ballot, const EnsembleResult& vote,
                                 std::ostream& out);
    std::vector<int> leaders() const;  // world ranks, by group

    const results::LaunchedRun run_;
    const context::RunContext& context_;
    comm::MpiWorld& world_;
    const Stopwatch& since_start_;
    Stopwatch since_training_;  // evaluations and all
    double startup_seconds_;
};

}  // namespace hpcai::benchmark
