// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include <hpcai/data/sources.hpp>

#include "base_model.hpp"
#include "start.hpp"

namespace hpcai::benchmark {

/// What a rank trains on, epoch after epoch. Only ranks with the first slice of the model read
/// samples, those of the first part of a pipeline's first stage; the others are handed batches
/// without any.
class EpochSource {
public:
    EpochSource(const Start& start, BaseModel& model, std::int64_t steps_per_epoch);

    void begin(std::uint32_t epoch);
    data::BatchSource& batches();
    /// None where no samples are read.
    data::BadSampleReport bad_samples() const;

private:
    class NoSamples;

    BaseModel& model_;
    std::unique_ptr<data::TrainingSource> samples_;  // null: none are read
    std::unique_ptr<data::BatchSource> no_samples_;
};

}  // namespace hpcai::benchmark
