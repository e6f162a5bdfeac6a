// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/progress.hpp>
#include <hpcai/base/progress_record.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/training/trainer.hpp>

namespace hpcai::group {

/// Shows how far a group is: that of the first on standard error, one live line on a terminal, a
/// line now and then elsewhere; that of each in its progress.json, every few seconds and when its
/// state changes. Silent on all ranks but the leaders, and those that speak for one.
class ProgressReporter {
public:
    /// `start` must outlive the object.
    explicit ProgressReporter(const context::RunContext& context);

    /// Training begins, at its first step or behind those of an earlier program.
    void begin();
    void step(const training::StepReport& step);
    /// Training has ended, evaluation begins.
    void finish();
    /// The group has ended in that state, for `failure` unless it has finished; whether its leader
    /// does not answer and this rank speaks for it.
    void end(const std::string& failure, ProgressState state, bool is_acting_leader);

private:
    void take_over();
    void write();

    const context::RunContext& context_;
    bool leads_;
    Stopwatch watch_;       // since the training began
    Stopwatch since_file_;  // since progress.json was written
    std::optional<ProgressLine> line_;
    std::optional<std::int64_t> first_step_;  // of this program
    ProgressRecord record_;
};

}  // namespace hpcai::group
