// SPDX-License-Identifier: Apache-2.0
#include "epoch_source.hpp"

#include <hpcai/training/faults.hpp>

namespace hpcai::benchmark {
namespace {

std::unique_ptr<data::TrainingSource> make_training_source(const Start& start, BaseModel& model,
                                                           std::int64_t steps_per_epoch) {
    const plan::Layout& layout = start.controller.layout();
    data::SourceSettings settings;
    settings.batch_size = start.config.training.batch_size;
    settings.group_rank = layout.replica_of(start.place.group_rank);
    settings.degree = layout.data_degree();
    settings.prefetch_batches = start.config.data.prefetch_batches;
    settings.decode_threads = decode_threads(start);
    settings.on_bad_sample = start.config.data.on_bad_sample;
    settings.before_row =
        training::make_loader_fault(training::faults_of_environment(), start.place.group,
                                    start.place.group_rank, steps_per_epoch);
    return std::make_unique<data::TrainingSource>(
        start.samples.training, settings, start.config.run.seed, model.number(), model.pictures());
}

}  // namespace

class EpochSource::NoSamples final : public data::BatchSource {
public:
    explicit NoSamples(std::int64_t batches) : batches_(batches) {}
    std::int64_t batches() const override { return batches_; }
    const data::Batch& next() override { return batch_; }
    double wait_seconds() const override { return 0; }

private:
    std::int64_t batches_;
    data::Batch batch_{.images = {nullptr, {0, 0, 0, 0}, tensor::DType::u8},
                       .labels = {nullptr, {0}, tensor::DType::s32}};
};

EpochSource::EpochSource(const Start& start, BaseModel& model, std::int64_t steps_per_epoch)
    : model_(model) {
    if (start.controller.layout().slice_of(start.place.group_rank) == 0) {
        samples_ = make_training_source(start, model, steps_per_epoch);
    } else {
        no_samples_ = std::make_unique<NoSamples>(steps_per_epoch);
    }
}

void EpochSource::begin(std::uint32_t epoch, std::int64_t first_batch) {
    if (samples_ == nullptr) return;
    samples_->begin_epoch(epoch, model_.sampler().epoch_order(model_.number(), epoch), first_batch);
}

data::BatchSource& EpochSource::batches() {
    return samples_ == nullptr ? *no_samples_ : *samples_;
}

data::BadSampleReport EpochSource::bad_samples() const {
    return samples_ == nullptr ? data::BadSampleReport{} : samples_->bad_samples();
}

std::vector<std::uint32_t> EpochSource::bad_sample_numbers() const {
    return samples_ == nullptr ? std::vector<std::uint32_t>{} : samples_->bad_sample_numbers();
}

void EpochSource::remember_bad_samples(std::span<const std::uint32_t> samples) {
    if (samples_ != nullptr) samples_->remember_bad_samples(samples);
}

}  // namespace hpcai::benchmark
