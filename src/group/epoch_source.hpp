// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <hpcai/context/run_context.hpp>
#include <hpcai/data/device_pictures.hpp>
#include <hpcai/data/sources.hpp>
#include <hpcai/plan/data_sampler.hpp>

namespace hpcai::group {

/// Returns the sampler of the training data of all models (the bootstrap).
plan::DataSampler make_sampler(const context::RunContext& context, const data::SampleSets& samples);

/// The training batches of a rank, epoch after epoch. Only ranks with the first shard of the
/// first stage read samples; other ranks get batches without samples.
class EpochSource {
public:
    /// `pictures` has images in GPU memory and may be null.
    EpochSource(const context::RunContext& context, const context::Resources& resources,
                data::DevicePictures* pictures, std::int64_t steps_per_epoch);
    /// Begins `epoch` with its batch `first_batch`; both count from 0.
    void begin(std::uint32_t epoch, std::int64_t first_batch = 0);
    data::BatchSource& batches() { return samples_ == nullptr ? *no_samples_ : *samples_; }
    /// The samples that could not be decoded, as in TrainingSource; none on ranks without samples.
    data::BadSampleReport bad_samples() const;
    std::vector<std::uint32_t> bad_sample_numbers() const;
    void restore_bad_samples(std::span<const std::uint32_t> samples) {
        if (samples_ != nullptr) samples_->restore_bad_samples(samples);
    }

private:
    class NoSamples;

    plan::DataSampler sampler_;
    std::uint32_t model_;                            // the number of the group
    std::unique_ptr<data::TrainingSource> samples_;  // null: this rank reads no samples
    std::unique_ptr<data::BatchSource> no_samples_;
};

}  // namespace hpcai::group
