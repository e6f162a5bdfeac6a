// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <hpcai/comm/gradient_buckets.hpp>
#include <hpcai/comm/sync_batch_norm_group.hpp>
#include <hpcai/training/snapshot.hpp>
#include <hpcai/training/step_runner.hpp>

namespace hpcai::group {

/// The waits and messages of a rank in all steps of a training.
struct TrainingCosts {
    double input_wait_seconds = 0;
    comm::BucketAccounting sums;
    comm::StatisticsAccounting statistics;
    std::optional<comm::SentBytes> gradients;  // none where a library chooses the messages
    training::MessageAccounting messages;

    /// Adds the costs of an earlier program's steps.
    void add(const TrainingCosts& earlier);
    void save(training::Snapshot& to) const;
    /// Throws Error(data) naming the array that does not fit.
    static TrainingCosts restored(const training::Snapshot& from);
};

}  // namespace hpcai::group
