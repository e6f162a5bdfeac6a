// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/progress.hpp>
#include <hpcai/training/trainer.hpp>

#include "start.hpp"

namespace hpcai::benchmark {

/// Shows how far the first group is, on standard error: one live line on a terminal, a line now
/// and then elsewhere. Silent on all ranks but that group's leader.
class ProgressReporter {
public:
    explicit ProgressReporter(const Start& start);
    void step(const training::StepReport& step);
    void finish();

private:
    Stopwatch watch_;
    std::optional<ProgressLine> line_;
    int epochs_;
    std::int64_t steps_before_ = -1;  // the first that is told of
};

}  // namespace hpcai::benchmark
