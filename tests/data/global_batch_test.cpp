// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/data/generate.hpp>
#include <hpcai/data/sources.hpp>
#include <hpcai/plan/data_sampler.hpp>

#include "fixtures.hpp"

/// The batches of a model, made by any number of ranks and threads, compared with images made one
/// by one in the order of DataSampler.
namespace hpcai::data {
namespace {

constexpr int kImageSide = 24;  // pixels a side
constexpr int kBatch = 12;
constexpr std::uint64_t kSeed = 9;
constexpr std::uint32_t kModel = 2;
constexpr std::size_t kRowBytes = std::size_t{kImageSide} * kImageSide * 3;

struct Rows {
    std::vector<std::uint8_t> pixels;
    std::vector<std::int32_t> labels;

    void append(const Batch& batch) {
        const auto samples = static_cast<std::size_t>(batch.samples);
        const auto all = batch.images.as<std::uint8_t>().first(samples * kRowBytes);
        const auto numbers = batch.labels.as<std::int32_t>().first(samples);
        pixels.insert(pixels.end(), all.begin(), all.end());
        labels.insert(labels.end(), numbers.begin(), numbers.end());
    }
    bool operator==(const Rows&) const = default;
};

/// Settings of a rank that must not affect the result.
struct Work {
    int decode_threads;
    int prefetch_batches;
};
constexpr Work kWorks[] = {{1, 1}, {2, 3}, {5, 8}};

class GlobalBatches : public testing::Test {
protected:
    void SetUp() override {
        generate_photographs({.directory = folder_.path() / "set",
                              .classes = 3,
                              .training_per_class = 17,
                              .validation_per_class = 7,
                              .size = 40},
                             2);
        config::DataConfig data;
        data.vertical_flip_probability = 0.5;
        training_ =
            make_folder_samples(scan_image_folder(folder_.path() / "set/train"), data, kImageSide);
        validation_ =
            make_folder_samples(scan_image_folder(folder_.path() / "set/val"), data, kImageSide);
        bagging_.sampler = config::Sampler::bootstrap;  // samples are drawn more than once
    }

    std::vector<std::uint32_t> order(std::uint32_t epoch) const {
        const plan::DataSampler sampler(bagging_, kSeed,
                                        static_cast<std::uint32_t>(training_->samples()));
        return sampler.epoch_order(kModel, epoch);
    }

    static SourceSettings settings_of(int rank, int degree, const Work& work) {
        SourceSettings settings;
        settings.batch_size = kBatch;
        settings.share = rank;
        settings.shares = degree;
        settings.decode_threads = work.decode_threads;
        settings.prefetch_batches = work.prefetch_batches;
        return settings;
    }

    /// Makes the batches one image after the other, as the contract of TrainingSource requires.
    std::vector<Rows> naive_batches(std::uint32_t epoch) const {
        const std::vector<std::uint32_t> samples = order(epoch);
        std::vector<Rows> batches(samples.size() / kBatch);
        for (std::size_t position = 0; position < batches.size() * kBatch; ++position) {
            const std::uint32_t sample = samples[position];
            const auto before = std::count(
                samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(position), sample);
            const CounterStream random(kSeed, RandomPurpose::augmentation, kModel, sample,
                                       epoch << 16 | static_cast<std::uint32_t>(before));
            std::vector<std::uint8_t> pixels(kRowBytes);
            EXPECT_EQ(training_->training_sample(sample, random,
                                                 {std::as_writable_bytes(std::span(pixels)), {}}),
                      "");
            Rows& batch = batches[position / kBatch];
            batch.pixels.insert(batch.pixels.end(), pixels.begin(), pixels.end());
            batch.labels.push_back(training_->label(sample));
        }
        return batches;
    }

    /// Joins the shares of `degree` ranks in the order of ranks.
    std::vector<Rows> batches_of_ranks(int degree, const Work& work, std::uint32_t epochs) const {
        std::vector<std::unique_ptr<TrainingSource>> ranks;
        for (int rank = 0; rank < degree; ++rank) {
            ranks.push_back(std::make_unique<TrainingSource>(
                training_, settings_of(rank, degree, work), kSeed, kModel));
        }
        std::vector<Rows> batches;
        for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
            for (const auto& rank : ranks) rank->begin_epoch(epoch, order(epoch));
            for (std::int64_t step = 0; step < ranks[0]->batches(); ++step) {
                batches.emplace_back();
                for (const auto& rank : ranks) {
                    const Batch& share = rank->next();
                    EXPECT_EQ(share.samples, kBatch / degree);
                    batches.back().append(share);
                }
            }
        }
        return batches;
    }

    test::TemporaryFolder folder_;
    std::shared_ptr<const SampleSet> training_, validation_;
    config::BaggingConfig bagging_;
};

TEST_F(GlobalBatches, OfTwoEpochsAreThePicturesMadeOneByOneForAnyNumberOfRanksAndThreads) {
    std::vector<Rows> expected = naive_batches(0);
    const std::vector<Rows> second = naive_batches(1);
    EXPECT_NE(expected, second);
    expected.insert(expected.end(), second.begin(), second.end());
    ASSERT_EQ(expected.size(), 2U * (51 / kBatch));
    for (const int degree : {1, 2, 3, 4, 6, 12}) {
        for (const Work& work : kWorks) {
            const std::vector<Rows> batches = batches_of_ranks(degree, work, 2);
            ASSERT_EQ(batches.size(), expected.size());
            for (std::size_t step = 0; step < expected.size(); ++step) {
                EXPECT_TRUE(batches[step] == expected[step])
                    << "step " << step << " of " << degree << " ranks with " << work.decode_threads
                    << " threads each";
            }
        }
    }
}

TEST_F(GlobalBatches, OfEvaluationAreTheRowsOfTheSetForAnyNumberOfRanksAndThreads) {
    Rows expected;
    for (std::uint32_t sample = 0; sample < validation_->samples(); ++sample) {
        std::vector<std::uint8_t> pixels(kRowBytes);
        EXPECT_EQ(
            validation_->evaluation_sample(sample, {std::as_writable_bytes(std::span(pixels)), {}}),
            "");
        expected.pixels.insert(expected.pixels.end(), pixels.begin(), pixels.end());
        expected.labels.push_back(validation_->label(sample));
    }
    ASSERT_EQ(expected.labels.size(), 21U);
    for (const int degree : {1, 2, 3, 4, 8}) {
        for (const Work& work : kWorks) {
            Rows rows;
            for (int rank = 0; rank < degree; ++rank) {
                SourceSettings settings = settings_of(rank, degree, work);
                settings.batch_size = 4;  // of a rank
                EvaluationSource source(validation_, settings);
                source.begin();
                for (std::int64_t i = 0; i < source.batches(); ++i) rows.append(source.next());
            }
            EXPECT_TRUE(rows == expected) << degree << " ranks";
        }
    }
}

}  // namespace
}  // namespace hpcai::data
