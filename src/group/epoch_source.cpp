// SPDX-License-Identifier: Apache-2.0
#include "epoch_source.hpp"

#include <hpcai/training/faults.hpp>

#include "predict.hpp"

namespace hpcai::group {
namespace {

std::unique_ptr<data::TrainingSource> make_training_source(const context::RunContext& context,
                                                           const context::Resources& resources,
                                                           data::DevicePictures* pictures,
                                                           std::int64_t steps_per_epoch) {
    const plan::Layout& layout = context.controller.layout();
    data::SourceSettings settings = source_settings(context.config.data, resources.threads);
    settings.batch_size = context.config.training.batch_size;
    settings.share = layout.replica_of(context.place.group_rank);
    settings.shares = layout.data_degree();
    settings.before_row =
        training::make_loader_fault(training::faults_of_environment(), context.place.group,
                                    context.place.group_rank, steps_per_epoch);
    return std::make_unique<data::TrainingSource>(
        resources.samples.training, settings, context.config.run.seed,
        static_cast<std::uint32_t>(context.place.group), pictures);
}

}  // namespace

plan::DataSampler make_sampler(const context::RunContext& context,
                               const data::SampleSets& samples) {
    return {context.config.bagging, context.config.run.seed,
            static_cast<std::uint32_t>(samples.training->samples())};
}

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

EpochSource::EpochSource(const context::RunContext& context, const context::Resources& resources,
                         data::DevicePictures* pictures, std::int64_t steps_per_epoch)
    : sampler_(make_sampler(context, resources.samples)),
      model_(static_cast<std::uint32_t>(context.place.group)) {
    if (context.controller.layout().partition_of(context.place.group_rank) == 0) {
        samples_ = make_training_source(context, resources, pictures, steps_per_epoch);
    } else {
        no_samples_ = std::make_unique<NoSamples>(steps_per_epoch);
    }
}

void EpochSource::begin(std::uint32_t epoch, std::int64_t first_batch) {
    if (samples_ == nullptr) return;
    samples_->begin_epoch(epoch, sampler_.epoch_order(model_, epoch), first_batch);
}

data::BadSampleReport EpochSource::bad_samples() const {
    return samples_ == nullptr ? data::BadSampleReport{} : samples_->bad_samples();
}

std::vector<std::uint32_t> EpochSource::bad_sample_numbers() const {
    return samples_ == nullptr ? std::vector<std::uint32_t>{} : samples_->bad_sample_numbers();
}

}  // namespace hpcai::group
