// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>

/// What a group keeps of each of its training steps. Plain data; `report` writes and reads it.
namespace hpcai {

/// Where the time of a step went, on one rank. Each is NaN where nobody could measure it.
struct PhaseSeconds {
    static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

    double input_wait = kUnknown;     // until the batch was there
    double forward = kUnknown;        // with the loss
    double backward = kUnknown;       // without what the next one is
    double communication = kUnknown;  // that no computation hid: sums, messages, waits for ranks
    double optimizer = kUnknown;
    double other = kUnknown;  // the rest of the step
};

/// One line of `groups/<m>/steps.csv`.
struct StepRecord {
    std::int64_t step = 0;     // from 0, over all epochs
    int epoch = 0;             // from 0
    std::int64_t samples = 0;  // of all ranks of the group
    double end_seconds = 0;    // since the group's clock started; exact where results were read
    double learning_rate = 0;
    double loss = PhaseSeconds::kUnknown;  // mean over the samples of the steps read together
    PhaseSeconds phases;                   // of the group's first rank
};

/// What a training's steps were on one rank: one line of `groups/<m>/ranks.csv`.
struct RankRecord {
    int group_rank = 0;
    int world_rank = 0;
    std::string host;
    std::int64_t steps = 0;
    double median_step_seconds = PhaseSeconds::kUnknown;
    double p99_step_seconds = PhaseSeconds::kUnknown;  // nearest rank
    double longest_step_seconds = PhaseSeconds::kUnknown;
    PhaseSeconds mean;  // of a step, over the steps that were measured
    // Sums of gradients under way while the rank computed; mean of a step
    double hidden_communication = PhaseSeconds::kUnknown;
    double peak_memory_bytes = PhaseSeconds::kUnknown;  // of the host, until training had ended
};

}  // namespace hpcai
