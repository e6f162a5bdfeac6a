// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/data/sources.hpp>

/// Batches of samples with boxes, and of elements larger than a byte.
namespace hpcai::data {
namespace {

constexpr std::int64_t kRows = 4;  // of the model's batch
constexpr std::int64_t kSamples = 9;
constexpr std::int64_t kMaxBoxes = 3;

/// All values of sample i are the number i, and it has i % 4 boxes; training adds 100 to its
/// coordinates. Sample 7 is bad.
class NumberedSamples final : public SampleSet {
public:
    std::int64_t samples() const override { return kSamples; }
    int classes() const override { return 4; }
    const SampleFormat& format() const override { return format_; }
    std::int32_t label(std::uint32_t) const override { return 0; }
    std::vector<Box> boxes(std::uint32_t sample) const override {
        std::vector<Box> all;
        const auto place = static_cast<float>(sample);
        for (std::uint32_t i = 0; i < sample % 4; ++i) {
            all.push_back({place, place + 1, place + 2, place + 3, static_cast<std::int32_t>(i)});
        }
        return all;
    }
    std::string name(std::uint32_t sample) const override { return std::to_string(sample); }
    std::string training_sample(std::uint32_t sample, CounterStream random,
                                const SampleView& view) const override {
        const std::string reason = evaluation_sample(sample, view);
        drawn_ = random.next_u32();
        for (std::size_t i = 0; i < boxes(sample).size() * kBoxValues; i += kBoxValues) {
            view.boxes[i] += 100;
        }
        return reason;
    }
    std::string evaluation_sample(std::uint32_t sample, const SampleView& view) const override {
        const std::span numbers(reinterpret_cast<float*>(view.pixels.data()),
                                view.pixels.size() / sizeof(float));
        std::ranges::fill(numbers, static_cast<float>(sample));
        write_boxes(boxes(sample), view.boxes);
        return sample == 7 ? "not for me" : "";
    }
    std::uint32_t drawn() const { return drawn_; }

private:
    SampleFormat format_{2, 3, 5, tensor::DType::f32, kMaxBoxes};
    mutable std::uint32_t drawn_ = 0;  // number of the latest sample
};

SourceSettings settings_of(int batch, config::BadSamplePolicy policy) {
    SourceSettings settings;
    settings.batch_size = batch;
    settings.on_bad_sample = policy;
    return settings;
}

const auto kSkip = config::BadSamplePolicy::skip;

/// The numbers of a row of boxes.
std::vector<float> boxes_of(const Batch& batch, std::int64_t row) {
    const auto all = batch.boxes.as<float>();
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(row * batch.boxes.shape[1] * 5);
    return {begin, begin + static_cast<std::ptrdiff_t>(batch.boxes.shape[1] * 5)};
}

TEST(BoxBatches, HaveTheShapesAndAlignmentOfTheirFormat) {
    TrainingSource source(std::make_shared<NumberedSamples>(), settings_of(kRows, kSkip), 1, 0);
    source.begin_epoch(0, {0, 1, 2, 3});
    const Batch& batch = source.next();
    EXPECT_EQ(batch.images.shape, (tensor::Shape{kRows, 2, 3, 5}));
    EXPECT_EQ(batch.images.dtype, tensor::DType::f32);
    EXPECT_EQ(batch.boxes.shape, (tensor::Shape{kRows, kMaxBoxes, 5}));
    EXPECT_EQ(batch.keys.shape, (tensor::Shape{kRows}));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(batch.images.data) % 64, 0U);
    for (std::int64_t i = 0; i < batch.images.shape.elements(); ++i) {
        EXPECT_EQ(batch.images.as<float>()[static_cast<std::size_t>(i)],
                  static_cast<float>(i / (2 * 3 * 5)));
    }
}

TEST(BoxBatches, HaveEachSamplesBoxesAndZeros) {
    TrainingSource source(std::make_shared<NumberedSamples>(), settings_of(2, kSkip), 1, 0);
    source.begin_epoch(0, {3, 3, 2, 0});  // in the previous batch, the memory had more boxes
    source.next();
    const Batch& batch = source.next();
    EXPECT_EQ(boxes_of(batch, 0),
              (std::vector<float>{102, 3, 4, 5, 0, 102, 3, 4, 5, 1, 0, 0, 0, 0, 0}));
    EXPECT_EQ(boxes_of(batch, 1), std::vector<float>(15, 0.0f));
}

TEST(BoxBatches, HaveNoBoxInPaddingAndSkippedRows) {
    EvaluationSource source(std::make_shared<NumberedSamples>(), settings_of(kRows, kSkip));
    source.begin();
    source.next();
    const Batch& second = source.next();  // samples 4 to 7
    EXPECT_EQ(boxes_of(second, 2)[5], 6.0f);
    EXPECT_EQ(second.labels.as<std::int32_t>()[3], -1);
    EXPECT_EQ(boxes_of(second, 3), std::vector<float>(15, 0.0f));
    const Batch& third = source.next();  // sample 8 and padding
    EXPECT_EQ(third.samples, 1);
    EXPECT_EQ(third.labels.as<std::int32_t>()[1], -1);
    EXPECT_EQ(boxes_of(third, 1), std::vector<float>(15, 0.0f));
    for (const std::int32_t key : third.keys.as<std::int32_t>()) EXPECT_EQ(key, 0);
}

std::vector<std::int32_t> keys_of_epoch(TrainingSource& source, std::uint32_t epoch,
                                        const std::vector<std::uint32_t>& order) {
    source.begin_epoch(epoch, order);
    std::vector<std::int32_t> keys;
    for (std::int64_t i = 0; i < source.batches(); ++i) {
        const auto batch = source.next().keys.as<std::int32_t>();
        keys.insert(keys.end(), batch.begin(), batch.end());
    }
    return keys;
}

TEST(BoxBatches, HaveAKeyForEachSeedModelEpochSampleAndRepetition) {
    const auto samples = std::make_shared<NumberedSamples>();
    std::set<std::int32_t> all;
    std::size_t count = 0;
    for (const std::uint64_t seed : {1, 2}) {
        for (const std::uint32_t model : {0U, 1U}) {
            TrainingSource source(samples, settings_of(2, kSkip), seed, model);
            for (const std::uint32_t epoch : {0U, 1U}) {
                const auto keys = keys_of_epoch(source, epoch, {4, 4, 5, 6});
                EXPECT_EQ(keys, keys_of_epoch(source, epoch, {4, 4, 5, 6}));
                all.insert(keys.begin(), keys.end());
                count += keys.size();
            }
        }
    }
    EXPECT_EQ(all.size(), count);
}

TEST(BoxBatches, KeysGoWithTheSampleAndNotWithRanksThreadsOrPlace) {
    const auto samples = std::make_shared<NumberedSamples>();
    TrainingSource whole(samples, settings_of(kRows, kSkip), 3, 1);
    const auto expected = keys_of_epoch(whole, 2, {1, 2, 3, 4});
    EXPECT_EQ(keys_of_epoch(whole, 2, {4, 3, 2, 1}),
              (std::vector<std::int32_t>{expected.rbegin(), expected.rend()}));
    std::vector<std::int32_t> together;
    for (int rank = 0; rank < 2; ++rank) {
        SourceSettings settings = settings_of(kRows, kSkip);
        settings.shares = 2;
        settings.share = rank;
        settings.decode_threads = 3;
        TrainingSource share(samples, settings, 3, 1);
        for (const std::int32_t key : keys_of_epoch(share, 2, {1, 2, 3, 4})) {
            together.push_back(key);
        }
    }
    EXPECT_EQ(together, expected);
}

TEST(BoxBatches, KeysAreNoneOfTheAugmentationsNumbers) {
    const auto samples = std::make_shared<NumberedSamples>();
    TrainingSource source(samples, settings_of(1, kSkip), 3, 1);
    const auto keys = keys_of_epoch(source, 0, {5});
    EXPECT_NE(static_cast<std::uint32_t>(keys[0]), samples->drawn());
}

TEST(BoxBatches, AReplacementBringsItsOwnKeyAndBoxes) {
    TrainingSource source(std::make_shared<NumberedSamples>(), settings_of(2, kSkip), 3, 1);
    source.begin_epoch(0, {7, 6});
    const Batch& batch = source.next();
    EXPECT_EQ(batch.keys.as<std::int32_t>()[0], batch.keys.as<std::int32_t>()[1]);
    EXPECT_EQ(boxes_of(batch, 0), boxes_of(batch, 1));
}

TEST(BoxBatches, MoreBoxesThanRowsAreOurMistake) {
    std::vector<float> rows(10);
    EXPECT_THROW(write_boxes(std::vector<Box>(3), rows), Error);
}

TEST(BoxBatches, ASubsetHasTheBoxesOfItsSamples) {
    const auto all = std::make_shared<NumberedSamples>();
    const auto two = make_subset(all, {6, 2});
    EXPECT_EQ(two->boxes(0), all->boxes(6));
    EXPECT_EQ(two->format(), all->format());
    EXPECT_EQ(two->class_name(3), all->class_name(3));
}

}  // namespace
}  // namespace hpcai::data
