// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <hpcai/training/step_runner.hpp>

namespace hpcai::training {

/// One optimizer step of a model on the inputs that its network has been given: working copies,
/// forward, backward with the sums over the group's ranks, update. If the device can, the step is
/// recorded once and enqueued whole from the third step on; the host then waits only to read
/// results.
class TrainingStep final : public StepRunner {
public:
    explicit TrainingStep(const StepSetup& setup);

    /// Enqueues a step, the same on all ranks of the group, in the order of the other calls. A rank
    /// without a batch takes part on any inputs and passes `has_failed`; then all ranks leave out
    /// the update.
    void run(double learning_rate, bool has_failed = false);

    void run_batch(const data::Batch* batch, double learning_rate, bool has_failed) override;
    StepResults read() override;

private:
    void enqueue();
    void mark();
    std::optional<PhaseSeconds> timed_phases();

    bool can_be_recorded_;
    std::int64_t steps_ = 0;
    std::unique_ptr<device::Timeline> timeline_;  // of the recording's phases
    std::unique_ptr<device::Recording> recording_;
    bool has_repeated_ = false;  // since the last reading
};

}  // namespace hpcai::training
