// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <hpcai/data/sources.hpp>

#include "base_model.hpp"
#include "run_context.hpp"

namespace hpcai::benchmark {

/// What a rank trains on, epoch after epoch. Only ranks with the first slice of the model read
/// samples, those of the first part of a pipeline's first stage; the others are handed batches
/// without any.
class EpochSource {
public:
    EpochSource(const Start& start, BaseModel& model, std::int64_t steps_per_epoch);

    /// From batch `first_batch` of the epoch on.
    void begin(std::uint32_t epoch, std::int64_t first_batch = 0);
    data::BatchSource& batches();
    /// None where no samples are read.
    data::BadSampleReport bad_samples() const;
    std::vector<std::uint32_t> bad_sample_numbers() const;
    void remember_bad_samples(std::span<const std::uint32_t> samples);

private:
    class NoSamples;

    BaseModel& model_;
    std::unique_ptr<data::TrainingSource> samples_;  // null: none are read
    std::unique_ptr<data::BatchSource> no_samples_;
};

}  // namespace hpcai::benchmark
