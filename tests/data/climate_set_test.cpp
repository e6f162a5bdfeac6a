// SPDX-License-Identifier: Apache-2.0
#include "data/climate_set.hpp"

#include <cmath>
#include <cstring>

#include <gmock/gmock.h>

#include <hpcai/base/error.hpp>
#include <hpcai/data/climate_generator.hpp>
#include <hpcai/data/sources.hpp>
#include <hpcai/tensor/half.hpp>

/// Synthetic weather as the network reads it.
namespace hpcai::data {
namespace {

constexpr int kHeight = 64, kWidth = 96;

config::Config small_config() {
    config::Config config;
    config.run.seed = 11;
    config.workload.image_size = kHeight;
    config.workload.image_width = kWidth;
    config.workload.channels = kClimateChannels;
    config.data.kind = config::DataKind::climate_synthetic;
    config.data.max_boxes = kMaxClimateBoxes;
    config.data.synthetic_samples = 6;
    config.data.synthetic_validation_samples = 3;
    return config;
}

struct Weather {
    explicit Weather(const SampleSet& set)
        : bytes(set.format().pixel_bytes()), boxes(set.format().box_values(), -1.0f) {}
    SampleView view() { return {bytes, boxes}; }
    std::vector<float> numbers() const {
        std::vector<float> all(bytes.size() / sizeof(float));
        std::memcpy(all.data(), bytes.data(), bytes.size());
        return all;
    }

    std::vector<std::byte> bytes;
    std::vector<float> boxes;
};

Weather evaluated(const SampleSet& set, std::uint32_t sample) {
    Weather weather(set);
    EXPECT_EQ(set.evaluation_sample(sample, weather.view()), "");
    return weather;
}

Weather trained(const SampleSet& set, std::uint32_t sample, std::uint32_t draw) {
    Weather weather(set);
    EXPECT_EQ(set.training_sample(sample, CounterStream(2, RandomPurpose::augmentation, draw),
                                  weather.view()),
              "");
    return weather;
}

std::vector<float> rows_of(const std::vector<Box>& boxes) {
    std::vector<float> rows(kMaxClimateBoxes * kBoxValues);
    write_boxes(boxes, rows);
    return rows;
}

TEST(SyntheticClimate, IsTheGeneratorsWeatherNormalized) {
    const SampleSets sets = make_synthetic_climate(small_config());
    EXPECT_EQ(sets.training->samples(), 6);
    EXPECT_EQ(sets.validation->samples(), 3);
    EXPECT_EQ(sets.training->classes(), 4);
    EXPECT_EQ(sets.training->class_name(2), "tropical cyclone");
    EXPECT_EQ(sets.training->format(),
              (SampleFormat{kHeight, kWidth, 16, tensor::DType::f32, kMaxClimateBoxes}));
    ClimateSettings settings;
    settings.height = kHeight;
    settings.width = kWidth;
    settings.seed = 11;
    const ClimateGenerator generator(settings);
    std::vector<float> fields(generator.elements());
    std::vector<Box> boxes;
    generator.sample(Split::validation, 2, FieldLayout::channels_last, fields, boxes);
    const Weather got = evaluated(*sets.validation, 2);
    EXPECT_EQ(got.boxes, rows_of(boxes));
    EXPECT_EQ(sets.validation->boxes(2), boxes);
    const std::vector<float> numbers = got.numbers();
    const auto [mean, deviation] = default_statistics();
    double largest_error = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const double expected = (fields[i] - mean[i % 16]) / deviation[i % 16];
        // In fp32 a pressure near 1e5 has an error of 1e-2, which is 1e-5 of its deviation.
        largest_error = std::max(largest_error, std::abs(numbers[i] - expected));
    }
    EXPECT_LT(largest_error, 2e-5);
}

TEST(SyntheticClimate, IsOfTheSizeThatNetworksExpect) {
    config::Config config = small_config();
    config.data.synthetic_samples = 80;
    const SampleSets sets = make_synthetic_climate(config);
    std::array<double, 16> sum{}, squares{};
    for (std::uint32_t sample = 0; sample < 80; ++sample) {
        const std::vector<float> numbers = evaluated(*sets.training, sample).numbers();
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            sum[i % 16] += numbers[i];
            squares[i % 16] += static_cast<double>(numbers[i]) * numbers[i];
        }
    }
    const double count = 80.0 * kHeight * kWidth;
    for (std::size_t channel = 0; channel < 16; ++channel) {
        const double mean = sum[channel] / count;
        const double deviation = std::sqrt(squares[channel] / count - mean * mean);
        EXPECT_LT(std::abs(mean), 1.0) << kClimateChannelNames[channel];
        EXPECT_GT(deviation, 0.3) << kClimateChannelNames[channel];
        EXPECT_LT(deviation, 2.5) << kClimateChannelNames[channel];
    }
}

TEST(SyntheticClimate, ItsBoxesAreKnownBeforeItsFields) {
    const SampleSets once = make_synthetic_climate(small_config());
    const SampleSets again = make_synthetic_climate(small_config());
    for (std::uint32_t sample = 0; sample < 3; ++sample) {
        const std::vector<Box> boxes = once.validation->boxes(sample);
        EXPECT_EQ(evaluated(*again.validation, sample).boxes, rows_of(boxes));
        EXPECT_EQ(once.validation->boxes(sample), boxes);
    }
}

TEST(SyntheticClimate, TheCacheAndThreadsChangeNothing) {
    config::Config config = small_config();
    std::vector<std::vector<float>> results;
    for (const int cache_mib : {0, 1, 64}) {  // no sample, two samples, all
        config.data.decoded_cache_mib = cache_mib;
        const auto set = make_synthetic_climate(config).training;
        SourceSettings settings;
        settings.batch_size = 2;
        settings.decode_threads = 1 + cache_mib % 3;
        TrainingSource source(set, settings, 4, 0);
        std::vector<float> all;
        for (std::uint32_t epoch : {0U, 1U}) {
            source.begin_epoch(epoch, {0, 1, 2, 3, 4, 5});
            for (std::int64_t i = 0; i < source.batches(); ++i) {
                const auto images = source.next().images.as<float>();
                all.insert(all.end(), images.begin(), images.end());
            }
        }
        results.push_back(std::move(all));
    }
    EXPECT_TRUE(results[0] == results[1]);
    EXPECT_TRUE(results[0] == results[2]);
}

TEST(SyntheticClimate, VariationIsAnExchangeOfHemispheresOrNothing) {
    const auto set = make_synthetic_climate(small_config()).training;
    const Weather plain = evaluated(*set, 1);
    std::vector<float> flipped = plain.numbers();
    std::vector<Box> flipped_boxes = set->boxes(1);
    flip_hemispheres(flipped, {kWidth, kHeight}, flipped_boxes, default_statistics());
    int flips = 0;
    constexpr int kDraws = 64;
    for (std::uint32_t draw = 0; draw < kDraws; ++draw) {
        const Weather got = trained(*set, 1, draw);
        const bool is_plain = got.bytes == plain.bytes;
        flips += !is_plain;
        EXPECT_TRUE(is_plain || got.numbers() == flipped);
        EXPECT_EQ(got.boxes, is_plain ? plain.boxes : rows_of(flipped_boxes));
    }
    EXPECT_NEAR(flips, kDraws / 2, 16);  // four standard deviations
}

TEST(SyntheticClimate, StaysAsItIsWithoutAugmentation) {
    config::Config config = small_config();
    config.data.climate_augmentation = false;
    const auto set = make_synthetic_climate(config).training;
    const Weather plain = evaluated(*set, 1);
    for (std::uint32_t draw = 0; draw < 8; ++draw) {
        EXPECT_TRUE(trained(*set, 1, draw).bytes == plain.bytes);
    }
}

TEST(SyntheticClimate, AGridOfAllLongitudesIsTurned) {
    config::Config config = small_config();
    config.workload.image_width = kClimateColumns;
    config.data.synthetic_samples = 1;
    config.data.decoded_cache_mib = 16;
    const auto set = make_synthetic_climate(config).training;
    const std::vector<float> plain = evaluated(*set, 0).numbers();
    for (std::uint32_t draw = 0; draw < 3; ++draw) {
        const std::vector<float> got = trained(*set, 0, draw).numbers();
        int matches = 0;
        for (int turn = 0; turn < kClimateColumns; ++turn) {
            for (const bool is_flipped : {false, true}) {
                // The bottom row, or the top row if flipped; surface pressure has no sign to
                // change.
                const std::size_t row = is_flipped ? kHeight - 1 : 0;
                bool is_equal = true;
                for (int x = 0; x < kClimateColumns && is_equal; ++x) {
                    const std::size_t from = (row * kClimateColumns + static_cast<std::size_t>(x));
                    const auto to = static_cast<std::size_t>((x + turn) % kClimateColumns);
                    is_equal = plain[from * 16 + 1] == got[to * 16 + 1];
                }
                matches += is_equal;
                EXPECT_FALSE(is_equal && turn == 0);
            }
        }
        EXPECT_EQ(matches, 1);
    }
}

TEST(SyntheticClimate, InHalfPrecisionIsTheSameWeatherRounded) {
    config::Config config = small_config();
    const auto full = make_synthetic_climate(config).training;
    for (const auto precision : {config::FieldPrecision::fp16, config::FieldPrecision::bf16}) {
        config.data.climate_precision = precision;
        const bool is_f16 = precision == config::FieldPrecision::fp16;
        const auto set = make_synthetic_climate(config).training;
        EXPECT_EQ(set->format().dtype, is_f16 ? tensor::DType::f16 : tensor::DType::bf16);
        const float step = is_f16 ? 0x1p-11f : 0x1p-8f;  // half a unit in the last place of 1
        for (const std::uint32_t draw : {0U, 1U, 2U, 3U}) {
            const std::vector<float> expected = trained(*full, 2, draw).numbers();
            const Weather got = trained(*set, 2, draw);
            EXPECT_EQ(got.boxes, trained(*full, 2, draw).boxes);
            float largest_error = 0;
            for (std::size_t i = 0; i < expected.size(); ++i) {
                std::uint16_t half = 0;
                std::memcpy(&half, got.bytes.data() + 2 * i, sizeof half);
                const float value = is_f16 ? tensor::from_f16(half) : tensor::from_bf16(half);
                largest_error = std::max(
                    largest_error, std::abs(value - expected[i]) / (1 + std::abs(expected[i])));
            }
            EXPECT_LT(largest_error, 2 * step);
            EXPECT_GT(largest_error, 0);
        }
    }
}

TEST(SyntheticClimate, SizesThatTheGeneratorLacksAreRejected) {
    config::Config config = small_config();
    config.workload.image_size = 800;
    EXPECT_THROW(make_synthetic_climate(config), Error);
}

}  // namespace
}  // namespace hpcai::data
