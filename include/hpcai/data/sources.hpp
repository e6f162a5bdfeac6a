// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/config/config.hpp>
#include <hpcai/data/bad_samples.hpp>
#include <hpcai/data/batch_source.hpp>
#include <hpcai/data/sample_set.hpp>

namespace hpcai::data {

/// The rows of batches that a rank prepares, and the resources to prepare them.
struct SourceSettings {
    int batch_size = 1;        // of all replicas in training, of this rank in evaluation
    int share = 0;             // index: in training, of the replica; in evaluation, the group rank
    int shares = 1;            // number: in training, of replicas; in evaluation, of group ranks
    int prefetch_batches = 3;  // prepared ahead of the batch in use
    int decode_threads = 1;
    config::BadSamplePolicy on_bad_sample = config::BadSamplePolicy::fail;
    // Called by loader threads before each row of a training batch. next() rethrows its exceptions
    // for that batch. May be null.
    std::function<void(std::uint32_t epoch, std::int64_t batch)> before_row = nullptr;
};

class BatchPipeline;
class DevicePictures;
struct BatchRow;

/// This rank's rows of a model's training batches: replica r of R has rows r B/R to (r+1) B/R - 1
/// of the B rows. Crops, flips and keys are a function of seed, model, epoch, sample, and the
/// number of earlier occurrences of the sample in the epoch, so batches do not depend on R or the
/// number of threads. With data.on_bad_sample `fail`, a bad sample throws Error(data) naming it.
/// With `skip`, the next good sample of the epoch replaces it; throws Error(data) if 1000 in a row
/// or all samples are bad. With `count`, it is used as far as it could be decoded.
class TrainingSource : public BatchSource {
public:
    /// Makes rows from `pictures` (may be null) if possible, otherwise from `samples`. Throws
    /// Error(internal) if batch_size is not a multiple of `shares`.
    TrainingSource(std::shared_ptr<const SampleSet> samples, const SourceSettings& settings,
                   std::uint64_t seed, std::uint32_t model, DevicePictures* pictures = nullptr);
    ~TrainingSource() override;

    /// Starts to prepare batches from `first_batch` on; batches() includes earlier batches. `order`
    /// has the sample numbers of the model's entire epoch. Drops a remainder that does not fill a
    /// batch. Aborts an epoch in progress.
    void begin_epoch(std::uint32_t epoch, std::vector<std::uint32_t> order,
                     std::int64_t first_batch = 0);

    std::int64_t batches() const override;
    const Batch& next() override;
    double wait_seconds() const override;
    /// Returns the bad samples since construction, including those of prefetched batches.
    BadSampleReport bad_samples() const { return bad_samples_.report(); }
    /// Returns the numbers of bad samples, ascending, for restore_bad_samples() after a resume.
    std::vector<std::uint32_t> bad_sample_numbers() const { return bad_samples_.numbers(); }
    void restore_bad_samples(std::span<const std::uint32_t> samples) {
        bad_samples_.restore(samples);
    }

private:
    struct Epoch;
    void fill(std::int64_t batch, std::int64_t row, const BatchRow& out);
    std::string try_position(std::size_t position, const BatchRow& out) const;

    std::shared_ptr<const SampleSet> samples_;
    SourceSettings settings_;
    std::uint64_t seed_;
    std::uint32_t model_;
    DevicePictures* pictures_;
    std::unique_ptr<Epoch> epoch_;
    BadSamples bad_samples_;
    std::unique_ptr<BatchPipeline> pipeline_;  // last member, because its threads use all others
};

/// The range of a group's samples that a rank evaluates. Of the P = `degree` ranks, the first ones
/// have ceil(samples / P) samples each; the last ones may have fewer or none.
struct EvaluationShare {
    std::int64_t first = 0;
    std::int64_t count = 0;
};
EvaluationShare evaluation_share(std::int64_t samples, int rank, int degree);

/// This rank's evaluation_share() of a set, in index order. All ranks have the same number of
/// batches, so the last batches of a rank may be only padding. A bad sample throws Error(data) with
/// `fail`, gets label -1 and no box with `skip`, and is scored as decoded with `count`.
class EvaluationSource : public BatchSource {
public:
    EvaluationSource(std::shared_ptr<const SampleSet> samples, const SourceSettings& settings);
    ~EvaluationSource() override;

    /// Starts a pass over the share. Aborts a pass in progress.
    void begin();

    std::int64_t batches() const override;
    const Batch& next() override;
    double wait_seconds() const override;
    BadSampleReport bad_samples() const { return bad_samples_.report(); }

private:
    void fill(std::int64_t batch, std::int64_t row, const BatchRow& out);

    std::shared_ptr<const SampleSet> samples_;
    SourceSettings settings_;
    std::int64_t full_share_ = 0;  // ceil(samples / P)
    EvaluationShare share_;
    std::int64_t delivered_batches_ = 0;  // of this pass
    BadSamples bad_samples_;
    std::unique_ptr<BatchPipeline> pipeline_;
};

}  // namespace hpcai::data
