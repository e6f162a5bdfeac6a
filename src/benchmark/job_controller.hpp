// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/log.hpp>
#include <hpcai/comm/mpi_world.hpp>
#include <hpcai/group/completed_group.hpp>
#include <hpcai/results/record.hpp>
#include <hpcai/results/repetitions.hpp>

#include "result_files.hpp"

namespace hpcai::benchmark {

/// The part of the paper's Job Controller that follows training: finds the groups that finished,
/// combines their predictions (the vote), scores the run and writes the results. One per rank.
class JobController {
public:
    /// `world`, `since_start` and the objects that `run` references must outlive this object.
    JobController(const results::LaunchedRun& run, comm::MpiWorld& world,
                  const Stopwatch& since_start)
        : run_(run),
          context_(run.context),
          world_(world),
          since_start_(since_start),
          startup_seconds_(since_start.seconds()) {}

    /// Ends the run on this rank. If the result includes this rank's group, returns after the
    /// result is complete. All ranks agree whether another run follows. Reports errors on standard
    /// error and returns their code; never throws. The exit codes are:
    ///  * The writer of the result returns the verdict's code. With run.repeat it returns ok if
    ///    another run follows, else the worst code of all runs.
    ///  * If a group has stopped, there is no vote. The writer prints the step and the command that
    ///    resumes the run. It returns stopped; internal if a checkpoint could not be written; or
    ///    watchdog if SIGTERM stopped groups after another group had failed.
    ///  * A leader that the others excluded returns the code of its group's stop, if any, else
    ///    partial.
    ///  * A rank that lost its leader, and whose exit would end other ranks, waits until the other
    ///    groups have ended and returns watchdog.
    ///  * Any other rank returns ok.
    results::RunEnd finish(const group::GroupOutcome& outcome, Logger& log, std::ostream& out);

private:
    void wait_until_others_exit(bool is_acting_leader);
    results::RunEnd run_as_leader(const group::GroupOutcome& outcome, Logger& log,
                                  std::ostream& out);
    results::RunEnd report_stop(const comm::AgreedMembers& agreed, std::ostream& out) const;
    results::RunEnd vote_and_write(const comm::AgreedMembers& agreed,
                                   const group::GroupOutcome& outcome, std::ostream& out);
    results::RunEnd write_result(const comm::AgreedMembers& agreed,
                                 const results::EnsembleResult& ensemble, std::ostream& out);
    std::vector<int> leaders() const;  // world ranks, by group

    const results::LaunchedRun run_;
    const context::RunContext& context_;
    comm::MpiWorld& world_;
    const Stopwatch& since_start_;
    Stopwatch since_training_;  // starts just before training; includes evaluations
    double startup_seconds_;
};

}  // namespace hpcai::benchmark
