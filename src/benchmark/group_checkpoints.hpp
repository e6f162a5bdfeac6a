// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/log.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/training/checkpoint.hpp>
#include <hpcai/training/trainer.hpp>

#include "group_watch.hpp"
#include "start.hpp"

namespace hpcai::benchmark {

/// What a checkpoint has beside what the Trainer keeps.
struct CheckpointContent {
    std::function<void(training::Snapshot&)> save;
    /// Throws Error(data) naming the array that does not fit.
    std::function<void(const training::Snapshot&)> restore;
};

/// The checkpoints of a group, and its end where the run is asked to stop: one on every rank, of
/// which all make the same calls. A checkpoint is copied to host memory between two steps and
/// written behind them; the newest whole one is never removed before another is whole.
class GroupCheckpoints final : public training::BetweenSteps {
public:
    /// What is given outlives it.
    GroupCheckpoints(const Start& start, comm::Communicator& group, Logger& log, GroupWatch& watch,
                     CheckpointContent content);

    /// Goes on from the newest checkpoint that is whole on all ranks, or, where there is none, from
    /// the beginning; the log tells of those that are damaged. Returns the steps done. Collective.
    std::int64_t restore(training::Trainer& trainer);

    bool needs_results(std::int64_t steps_done) const override;
    /// Where one is due, begins a checkpoint. About once a second looks whether a rank was asked to
    /// stop; then writes one and throws Error(stopped) on all ranks.
    void after_reading(training::Trainer& trainer, std::int64_t steps_done) override;

private:
    struct Attempt;

    Attempt attempt(training::Trainer& trainer, std::int64_t step);
    bool holds_everywhere(const Attempt& attempt);
    void checkpoint(training::Trainer& trainer, std::int64_t steps_done);
    std::string finish_write();
    std::optional<std::string> agree_to_stop(std::int64_t steps_done);
    double my_wish() const;
    [[noreturn]] void stop(training::Trainer& trainer, std::int64_t steps_done,
                           const std::string& cause);
    std::int64_t sum(std::int64_t mine);

    const Start& start_;
    comm::Communicator& group_;
    Logger& log_;
    GroupWatch& watch_;
    CheckpointContent content_;
    training::CheckpointPlace place_;
    std::int64_t program_ = 0;
    training::BackgroundWork write_;
    std::optional<std::int64_t> being_written_, last_whole_;
    std::int64_t next_look_ = 0, last_look_ = 0;
    Stopwatch since_look_;
    double held_up_seconds_ = 0;  // of the steps, by checkpoints
    double write_seconds_ = 0;    // of the longest write; 0: there was none
};

/// checkpoints/<m> of a result directory.
std::filesystem::path checkpoint_directory(const std::filesystem::path& output, int group);

/// When the group has stored what became of it, and no rank writes any more; what cannot be removed
/// stays.
void remove_group_checkpoints(const std::filesystem::path& output, int group) noexcept;

/// "mpirun -np 4 hpcai500 resume DIR"
std::string resume_command(int ranks, const std::filesystem::path& output);

}  // namespace hpcai::benchmark
