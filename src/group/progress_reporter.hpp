// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/progress.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/records/progress_record.hpp>
#include <hpcai/training/trainer.hpp>

namespace hpcai::group {

/// Reports the progress of a group. The first group prints as run.progress asks: on standard error
/// one live line on a terminal and occasional lines elsewhere, or JSON lines on standard output.
/// Each group writes its progress.json every few seconds and when its state changes. Only leaders,
/// and ranks that replace a lost leader (acting leaders), report.
class ProgressReporter {
public:
    /// `context` outlives the object. `test_samples` are evaluated after the training.
    ProgressReporter(const context::RunContext& context, std::int64_t test_samples);

    /// Begins the training, or continues the training of an earlier launch.
    void begin();
    /// Shows in which trial of an architecture search the next steps are.
    void set_trial(int trial) { trial_ = trial; }
    void step(const training::StepReport& step);
    /// Writes progress.json if it is older than a few seconds. Call it while the group waits.
    void keep_alive();
    /// Sets the progress back to `steps` steps. Later steps will be trained again.
    void forget_steps_after(std::int64_t steps);
    /// Ends the training and begins the evaluation.
    void finish() { end("", ProgressState::evaluating, false); }
    /// Ends the group in `state`. `failure` is the reason; empty if the group is complete.
    void end(const std::string& failure, ProgressState state, bool is_acting_leader);

private:
    void write();
    std::optional<int> slowest_group() const;
    void estimate_run(Progress& progress) const;
    void read_peer();

    const context::RunContext& context_;
    std::int64_t test_samples_;
    bool reports_;          // whether this rank is a leader or an acting leader
    Stopwatch watch_;       // since the training began
    Stopwatch since_file_;  // since progress.json was written
    std::optional<ProgressLine> line_;
    std::optional<std::int64_t> first_step_;  // of this launch
    std::optional<int> trial_;
    ProgressRecord record_;
    struct Estimate {
        double end_unix_seconds = 0;   // of the training, estimated; 0: unknown
        double images_per_second = 0;  // 0: unknown, or of this group after its last step
        bool has_ended = false;        // its training
    };
    std::size_t peer_ = 0;          // the group that read_peer() read last
    std::vector<Estimate> groups_;  // [group]
};

}  // namespace hpcai::group
