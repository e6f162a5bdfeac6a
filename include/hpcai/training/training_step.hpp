// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include <hpcai/training/step_runner.hpp>

namespace hpcai::training {

/// Runs optimizer steps on the current inputs of a network: refresh of the working copies, forward,
/// backward with all-reduces, update. If device.recording is set, device and reducer
/// support capture, and before_all_reduce is null, the third step is captured once (as a CUDA
/// graph) and later steps replay the graph. The host then waits only to read results.
class TrainingStep final : public StepRunner {
public:
    explicit TrainingStep(const StepSetup& setup);

    /// Enqueues a step. All ranks of the group make the same calls in the same order. A rank
    /// without a batch runs on any inputs and passes `has_failed`; then all ranks skip the update.
    void run(double learning_rate, bool has_failed = false);

    void run_batch(const data::Batch* batch, double learning_rate, bool has_failed) override;
    StepResults read() override;

private:
    void enqueue();
    void mark() {
        if (timeline_ != nullptr) timeline_->mark();
    }

    bool can_be_recorded_;
    std::int64_t steps_ = 0;
    std::unique_ptr<device::Timeline> timeline_;  // times the phases of the CUDA graph
    std::unique_ptr<device::Recording> recording_;
    bool has_run_recording_ = false;  // since results were last read
};

}  // namespace hpcai::training
