// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

/// The times of training steps. Module report writes them to CSV files and reads them.
namespace hpcai {

/// The seconds of the phases of a step on one rank; NaN if a phase was not measured.
struct PhaseSeconds {
    static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

    double input_wait = kUnknown;  // wait until the batch was ready
    double forward = kUnknown;     // with the loss
    double backward = kUnknown;    // without exposed communication
    // Exposed all-reduces, and messages and waits between stages and shards.
    double communication = kUnknown;
    double optimizer = kUnknown;
    double other = kUnknown;  // remaining time of the step
};

/// One line of `groups/<m>/steps.csv`.
struct StepRecord {
    std::int64_t step = 0;     // from 0, over all epochs
    int epoch = 0;             // from 0
    std::int64_t samples = 0;  // of all ranks of the group
    // When the host ended the step, on the group's clock. If the host did not read the step's
    // results, a GPU may complete the step later.
    double end_seconds = 0;
    double learning_rate = 0;
    double loss = PhaseSeconds::kUnknown;  // mean over the steps whose results were read together
    PhaseSeconds phases;                   // of the group's first rank
};

/// The steps of one rank: one line of `groups/<m>/ranks.csv`.
struct RankRecord {
    int group_rank = 0;
    int world_rank = 0;
    std::string host;
    std::int64_t steps = 0;
    double median_step_seconds = PhaseSeconds::kUnknown;
    double p99_step_seconds = PhaseSeconds::kUnknown;  // by the nearest-rank method
    double longest_step_seconds = PhaseSeconds::kUnknown;
    PhaseSeconds mean;  // per step, over the measured steps
    // Seconds of gradients' all-reduces that overlapped with computation, mean per step
    double overlapped_communication = PhaseSeconds::kUnknown;
    double peak_memory_bytes = PhaseSeconds::kUnknown;  // host memory, until the end of training
};

enum class TraceLane {
    steps,       // steps with their phases, nested
    kernels,     // one after another
    all_reduces  // of gradients; they may overlap
};

struct TraceEvent {
    TraceLane lane = TraceLane::steps;
    std::string name;          // "step 4", "forward", the name of a graph node, or "bucket 0"
    std::string pass;          // of a kernel; else empty
    double begin_seconds = 0;  // on the rank's clock
    double end_seconds = 0;
};

/// The events of a rank in the steps that run.trace_steps selects.
struct RankTrace {
    int group_rank = 0;
    int world_rank = 0;
    std::string host;
    std::vector<TraceEvent> events;
};

}  // namespace hpcai
