// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <hpcai/base/error.hpp>
#include <hpcai/data/image_codec.hpp>
#include <hpcai/data/sources.hpp>

#include "fixtures.hpp"

namespace hpcai::data {
namespace {

namespace fs = std::filesystem;
using config::BadSamplePolicy;

constexpr int kSourceSide = 16;

/// Three classes of five images of 80 x 60 pixels.
class Sources : public testing::Test {
protected:
    void SetUp() override {
        for (std::uint32_t i = 0; i < 15; ++i) {
            CounterStream random(3, RandomPurpose::test, i);
            Image image(80, 60);
            const std::uint32_t period = 3 + random.below(9);
            for (std::size_t p = 0; p < image.pixels.size(); ++p) {
                image.pixels[p] = static_cast<std::uint8_t>(p / 3 % 80 / period * 40 + i * 7 +
                                                            p / 240 % 60 / period * 30);
            }
            test::write_file_bytes(path(i), encode_jpeg(image.view(), 90));
        }
    }
    fs::path path(std::uint32_t sample) const {
        return folder_.path() / std::string(1, static_cast<char>('a' + sample / 5)) /
               (std::to_string(sample % 5) + ".jpg");
    }
    void damage(std::uint32_t sample) {
        auto bytes = test::read_file_bytes(path(sample));
        bytes.resize(bytes.size() / 2);
        test::write_file_bytes(path(sample), bytes);
    }
    std::shared_ptr<const SampleSet> samples(int cache_mib = 0,
                                             int image_size = kSourceSide) const {
        config::DataConfig data;
        data.decoded_cache_mib = cache_mib;
        data.vertical_flip_probability = 0.5;
        return make_folder_samples(scan_image_folder(folder_.path()), data, image_size);
    }

    test::TemporaryFolder folder_;
};

using Bytes = std::vector<std::uint8_t>;

SampleView view_of(Bytes& pixels) {
    return {std::as_writable_bytes(std::span(pixels)), {}};
}

bool all_equal(const std::vector<Bytes>& results) {
    return std::all_of(results.begin(), results.end(),
                       [&results](const Bytes& result) { return result == results.front(); });
}

Bytes pixels_of(const Batch& batch) {
    const auto view = batch.images.as<std::uint8_t>();
    return {view.begin(), view.end()};
}

std::vector<std::int32_t> labels_of(const Batch& batch) {
    const auto view = batch.labels.as<std::int32_t>();
    return {view.begin(), view.end()};
}

std::vector<std::uint32_t> sequence(std::uint32_t size, std::uint32_t samples) {
    std::vector<std::uint32_t> order(size);
    for (std::uint32_t i = 0; i < size; ++i) order[i] = i * 7 % samples;
    return order;
}

/// Returns all batches of an epoch, one after the other.
Bytes epoch_bytes(TrainingSource& source, std::uint32_t epoch,
                  const std::vector<std::uint32_t>& order) {
    source.begin_epoch(epoch, order);
    Bytes all;
    for (std::int64_t i = 0; i < source.batches(); ++i) {
        const Bytes batch = pixels_of(source.next());
        all.insert(all.end(), batch.begin(), batch.end());
    }
    return all;
}

TEST_F(Sources, TrainingBytesDoNotDependOnThreads) {
    for (const int cache_mib : {0, 1}) {
        std::vector<Bytes> results;
        for (const int threads : {1, 2, 4}) {
            SourceSettings settings;
            settings.batch_size = 4;
            settings.decode_threads = threads;
            TrainingSource source(samples(cache_mib), settings, 5, 0);
            results.push_back(epoch_bytes(source, 2, sequence(30, 15)));
        }
        EXPECT_TRUE(all_equal(results));
        EXPECT_EQ(results.front().size(),
                  28U * kSourceSide * kSourceSide * 3);  // 30 samples: 7 batches of 4
    }
}

/// The crop of a PNG is not decoded downscaled, so the cache does not change pixels.
TEST_F(Sources, ReadAPngNamedLikeAJpegAndAJpegWithAWarning) {
    test::write_file_bytes(path(3), test::read_fixture("png_inside.jpg"));
    test::write_file_bytes(path(4), test::read_fixture("warning_corrupt_data.jpg"));
    for (std::uint32_t draw = 0; draw < 20; ++draw) {
        const CounterStream random(5, RandomPurpose::test, draw);
        Bytes cached(3 * 8 * 8), cropped(3 * 8 * 8);
        EXPECT_EQ(samples(1, 8)->training_sample(3, random, view_of(cached)), "");
        EXPECT_EQ(samples(0, 8)->training_sample(3, random, view_of(cropped)), "");
        EXPECT_EQ(cached, cropped) << "draw " << draw;
        EXPECT_EQ(samples(0, 8)->training_sample(4, random, view_of(cropped)), "");
    }
    Bytes whole(3 * 8 * 8);
    EXPECT_EQ(samples(0, 8)->evaluation_sample(3, view_of(whole)), "");
    EXPECT_EQ(samples(0, 8)->evaluation_sample(4, view_of(whole)), "");
}

TEST_F(Sources, CountAnImageWithADecoderWarningOnce) {
    test::write_file_bytes(path(4), test::read_fixture("warning_version.jpg"));
    Bytes pixels(3 * 8 * 8);
    for (const int cache_mib : {0, 1}) {
        const auto set = samples(cache_mib, 8);
        for (const std::uint32_t sample : {3U, 4U, 4U}) {
            set->training_sample(sample, CounterStream(5, RandomPurpose::test, 0), view_of(pixels));
            EXPECT_EQ(set->decoder_warnings().count, sample == 3 ? 0 : 1);
        }
        EXPECT_EQ(set->decoder_warnings().first.at(0).name, set->name(4));
    }
}

TEST_F(Sources, RanksTogetherMakeTheBatchOfOne) {
    const auto order = sequence(16, 15);
    SourceSettings settings;
    settings.batch_size = 8;
    TrainingSource whole(samples(), settings, 5, 1);
    whole.begin_epoch(0, order);
    settings.shares = 4;
    std::vector<std::unique_ptr<TrainingSource>> parts;
    for (int rank = 0; rank < 4; ++rank) {
        settings.share = rank;
        parts.push_back(std::make_unique<TrainingSource>(samples(), settings, 5, 1));
        parts.back()->begin_epoch(0, order);
        ASSERT_EQ(parts.back()->batches(), 2);
    }
    for (int batch = 0; batch < 2; ++batch) {
        const Batch& expected = whole.next();
        Bytes pixels;
        std::vector<std::int32_t> labels;
        for (const auto& part : parts) {
            const Batch& got = part->next();
            EXPECT_EQ(got.samples, 2);
            for (const auto byte : pixels_of(got)) pixels.push_back(byte);
            for (const auto label : labels_of(got)) labels.push_back(label);
        }
        EXPECT_TRUE(pixels == pixels_of(expected));
        EXPECT_EQ(labels, labels_of(expected));
    }
}

TEST_F(Sources, PixelsChangeWithSeedModelEpochAndRepetition) {
    SourceSettings settings;
    settings.batch_size = 2;
    TrainingSource first(samples(), settings, 5, 0);
    TrainingSource other_seed(samples(), settings, 6, 0);
    TrainingSource other_model(samples(), settings, 5, 1);
    const std::vector<std::uint32_t> twice{3, 3};
    const Bytes reference = epoch_bytes(first, 0, twice);
    EXPECT_EQ(epoch_bytes(first, 0, twice), reference);
    EXPECT_NE(epoch_bytes(first, 1, twice), reference);
    EXPECT_NE(epoch_bytes(other_seed, 0, twice), reference);
    EXPECT_NE(epoch_bytes(other_model, 0, twice), reference);
    const auto half = static_cast<std::ptrdiff_t>(reference.size() / 2);
    EXPECT_FALSE(std::equal(reference.begin(), reference.begin() + half, reference.begin() + half));
}

TEST_F(Sources, AnEpochMayBeAbandoned) {
    SourceSettings settings;
    settings.batch_size = 2;
    settings.decode_threads = 2;
    TrainingSource source(samples(), settings, 5, 0);
    const auto order = sequence(40, 15);
    const Bytes reference = epoch_bytes(source, 3, order);
    source.begin_epoch(0, sequence(100, 15));
    source.next();
    EXPECT_EQ(epoch_bytes(source, 3, order), reference);
    EXPECT_GE(source.wait_seconds(), 0.0);
}

TEST_F(Sources, ContinueAfterBatchesThatWereTrainedOnBefore) {
    const auto batches_from = [&](std::int64_t first) {
        TrainingSource source(samples(), {.batch_size = 4}, 5, 1);
        source.begin_epoch(2, sequence(23, 15), first);
        std::vector<Bytes> pixels;
        for (std::int64_t batch = first; batch < source.batches(); ++batch) {
            pixels.push_back(pixels_of(source.next()));
        }
        return pixels;
    };
    const std::vector<Bytes> all = batches_from(0);
    ASSERT_EQ(all.size(), 5U);
    EXPECT_EQ(batches_from(3), (std::vector<Bytes>{all[3], all[4]}));
    EXPECT_TRUE(batches_from(5).empty());
}

TEST_F(Sources, CountBadSamplesThatWereMetBefore) {
    damage(3);
    const auto bad_of = [&](std::vector<std::uint32_t> before) {
        SourceSettings settings{.batch_size = 5};
        settings.on_bad_sample = config::BadSamplePolicy::skip;
        TrainingSource source(samples(), settings, 5, 1);
        source.restore_bad_samples(before);
        source.begin_epoch(0, {0, 1, 2, 3, 4});
        source.next();
        EXPECT_EQ(source.bad_samples().first.size(), 1U) << "of which the name is known";
        return source.bad_sample_numbers();
    };
    EXPECT_EQ(bad_of({}), (std::vector<std::uint32_t>{3}));
    EXPECT_EQ(bad_of({9, 3}), (std::vector<std::uint32_t>{3, 9}));
}

TEST_F(Sources, EvaluationScoresEverySampleOnceAndPads) {
    for (const int degree : {1, 2, 4}) {
        std::vector<std::int32_t> labels;
        std::int64_t real = 0;
        for (int rank = 0; rank < degree; ++rank) {
            SourceSettings settings;
            settings.batch_size = 4;
            settings.share = rank;
            settings.shares = degree;
            settings.decode_threads = 2;
            EvaluationSource source(samples(), settings);
            source.begin();
            EXPECT_EQ(source.batches(), degree == 4 ? 1 : 4 / degree);
            std::int64_t mine = 0;
            for (std::int64_t i = 0; i < source.batches(); ++i) {
                const Batch& batch = source.next();
                mine += batch.samples;
                const auto rows = labels_of(batch);
                for (std::size_t row = 0; row < rows.size(); ++row) {
                    const bool padding = static_cast<std::int64_t>(row) >= batch.samples;
                    EXPECT_EQ(rows[row] == -1, padding);
                    if (!padding) labels.push_back(rows[row]);
                }
            }
            EXPECT_EQ(mine, evaluation_share(15, rank, degree).count);
            real += mine;
        }
        EXPECT_EQ(real, 15);
        EXPECT_EQ(labels, (std::vector<std::int32_t>{0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2}));
    }
}

TEST_F(Sources, TheCacheBudgetDoesNotChangePixels) {
    SourceSettings settings;
    settings.batch_size = 5;
    // Fifteen images of 14 400 bytes fit 1 MiB; the second budget is never reached.
    TrainingSource small(samples(1), settings, 5, 0);
    TrainingSource large(samples(64), settings, 5, 0);
    const auto order = sequence(15, 15);
    EXPECT_EQ(epoch_bytes(small, 0, order), epoch_bytes(large, 0, order));
    EXPECT_EQ(epoch_bytes(small, 1, order), epoch_bytes(large, 1, order));
}

TEST_F(Sources, TheCacheChangesNoPixelWhereCropsAreTooSmallToBeReduced) {
    SourceSettings settings;
    settings.batch_size = 5;
    TrainingSource cached(samples(1, 48), settings, 5, 0);
    TrainingSource around_the_crop(samples(0, 48), settings, 5, 0);
    const auto order = sequence(60, 15);
    EXPECT_EQ(epoch_bytes(cached, 0, order), epoch_bytes(around_the_crop, 0, order));
}

TEST_F(Sources, ABadSampleFailsWithItsPathAndReason) {
    damage(7);
    SourceSettings settings;
    settings.batch_size = 3;
    for (const int threads : {1, 4}) {
        settings.decode_threads = threads;
        TrainingSource source(samples(), settings, 5, 0);
        source.begin_epoch(0, {0, 1, 2, 3, 4, 5, 6, 7, 8});
        source.next();
        source.next();
        try {
            source.next();
            FAIL() << "no error";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::data);
            EXPECT_NE(std::string(error.what()).find(path(7).string()), std::string::npos);
        }
    }
    EvaluationSource evaluation(samples(), settings);
    evaluation.begin();
    evaluation.next();
    evaluation.next();
    EXPECT_THROW(evaluation.next(), Error);
}

TEST_F(Sources, ASkippedSampleIsReplacedByTheNextGoodOne) {
    damage(1);
    test::write_file_bytes(path(2), {});
    SourceSettings settings;
    settings.batch_size = 5;
    settings.on_bad_sample = BadSamplePolicy::skip;
    TrainingSource source(samples(), settings, 5, 0);
    const Bytes replaced = epoch_bytes(source, 0, {0, 1, 2, 10, 14});
    const Bytes expected = epoch_bytes(source, 0, {0, 10, 10, 10, 14});
    const std::size_t row = kSourceSide * kSourceSide * 3;
    // Rows 1 and 2 both show the same as row 3, the first appearance of sample 10.
    EXPECT_TRUE(
        std::equal(replaced.begin() + row, replaced.begin() + 2 * row, expected.begin() + row));
    EXPECT_TRUE(
        std::equal(replaced.begin() + 2 * row, replaced.begin() + 3 * row, expected.begin() + row));
    source.begin_epoch(0, {0, 1, 2, 10, 14});
    EXPECT_EQ(labels_of(source.next()), (std::vector<std::int32_t>{0, 2, 2, 2, 2}));
    const BadSampleReport report = source.bad_samples();
    EXPECT_EQ(report.count, 2);
    ASSERT_EQ(report.first.size(), 2U);
    EXPECT_EQ(report.first[0].name, path(1).string());
    EXPECT_EQ(report.first[1].reason, "the file is empty");
    source.begin_epoch(0, {1, 2, 1, 2, 1});
    EXPECT_THROW(source.next(), Error);
}

TEST_F(Sources, SkippedAndCountedSamplesInEvaluation) {
    damage(1);
    test::write_file_bytes(path(2), {});
    SourceSettings settings;
    settings.batch_size = 5;
    settings.on_bad_sample = BadSamplePolicy::skip;
    EvaluationSource skipping(samples(), settings);
    skipping.begin();
    EXPECT_EQ(labels_of(skipping.next()), (std::vector<std::int32_t>{0, -1, -1, 0, 0}));
    settings.on_bad_sample = BadSamplePolicy::count;
    EvaluationSource counting(samples(), settings);
    counting.begin();
    const Batch& batch = counting.next();
    EXPECT_EQ(labels_of(batch), (std::vector<std::int32_t>{0, 0, 0, 0, 0}));
    const Bytes pixels = pixels_of(batch);
    const std::size_t row = kSourceSide * kSourceSide * 3;
    EXPECT_EQ(Bytes(pixels.begin() + 2 * row, pixels.begin() + 3 * row), Bytes(row, 128));
    EXPECT_EQ(counting.bad_samples().count, 2);
}

TEST_F(Sources, AFileThatBecameAPipeIsBadAndDoesNotHang) {
    const auto set = samples();
    fs::remove(path(4));
    ASSERT_EQ(mkfifo(path(4).c_str(), 0600), 0);
    Bytes pixels(kSourceSide * kSourceSide * 3);
    EXPECT_EQ(set->evaluation_sample(4, view_of(pixels)), "not a regular file");
    fs::remove(path(4));
    EXPECT_NE(set->evaluation_sample(4, view_of(pixels)), "");
}

TEST(SyntheticSamples, AreTheSameForEveryThreadCountAndDifferByClassAndSplit) {
    config::Config configuration;
    configuration.workload.classes = 3;
    configuration.workload.image_size = 12;
    configuration.workload.channels = 5;
    configuration.data.synthetic_samples = 10;
    configuration.data.synthetic_validation_samples = 4;
    const auto group = comm::make_self_communicator();
    const SampleSets sets = make_sample_sets(configuration, *group);
    EXPECT_EQ(sets.training->samples(), 10);
    EXPECT_EQ(sets.validation->samples(), 4);
    EXPECT_EQ(sets.training->label(7), 1);
    std::vector<Bytes> results;
    for (const int threads : {1, 2, 4}) {
        SourceSettings settings;
        settings.batch_size = 5;
        settings.decode_threads = threads;
        TrainingSource source(sets.training, settings, 1, 0);
        results.push_back(epoch_bytes(source, 0, sequence(10, 10)));
    }
    EXPECT_TRUE(all_equal(results));
    Bytes training(12 * 12 * 5), validation(12 * 12 * 5);
    sets.training->evaluation_sample(0, view_of(training));
    sets.validation->evaluation_sample(0, view_of(validation));
    EXPECT_NE(training, validation);
}

TEST(SampleSets, FoldersHaveThreeChannels) {
    config::Config configuration;
    configuration.data.kind = config::DataKind::image_folder;
    configuration.workload.channels = 16;
    const auto group = comm::make_self_communicator();
    EXPECT_THROW(make_sample_sets(configuration, *group), Error);
}

}  // namespace
}  // namespace hpcai::data
