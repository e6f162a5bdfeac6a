// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <thread>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/data/climate_generator.hpp>

namespace hpcai::data {
namespace {

struct GeneratedSample {
    std::vector<float> fields;
    std::vector<Box> boxes;
    bool operator==(const GeneratedSample&) const = default;
};

GeneratedSample sample_of(const ClimateGenerator& generator, std::uint32_t number,
                          Split split = Split::training,
                          FieldLayout layout = FieldLayout::channels_first) {
    GeneratedSample sample;
    sample.fields.resize(generator.elements());
    generator.sample(split, number, layout, sample.fields, sample.boxes);
    return sample;
}

ClimateSettings small_window() {
    ClimateSettings settings;
    settings.height = 128;
    settings.width = 192;
    return settings;
}

TEST(ClimateGenerator, ASampleIsAFunctionOfSeedSplitAndNumberAlone) {
    const ClimateGenerator generator(small_window());
    const GeneratedSample three = sample_of(generator, 3);
    sample_of(generator, 9);
    EXPECT_EQ(sample_of(generator, 3), three);
    EXPECT_EQ(sample_of(ClimateGenerator(small_window()), 3), three);
    EXPECT_NE(sample_of(generator, 4).fields, three.fields);
    EXPECT_NE(sample_of(generator, 3, Split::validation).fields, three.fields);
    ClimateSettings other = small_window();
    other.seed = 2;
    EXPECT_NE(sample_of(ClimateGenerator(other), 3).fields, three.fields);
}

TEST(ClimateGenerator, ManyThreadsGetTheBitsThatOneGets) {
    const ClimateGenerator generator(small_window());
    constexpr std::uint32_t kSamples = 4;
    std::array<GeneratedSample, kSamples> together;
    {
        std::vector<std::jthread> threads;
        for (std::uint32_t i = 0; i < kSamples; ++i) {
            threads.emplace_back([&, i] { together[i] = sample_of(generator, i); });
        }
    }
    for (std::uint32_t i = 0; i < kSamples; ++i) EXPECT_EQ(together[i], sample_of(generator, i));
}

TEST(ClimateGenerator, AWindowHoldsThePixelsOfTheWholeGrid) {
    const ClimateGenerator whole({});
    const ClimateGenerator part(small_window());
    for (const std::uint32_t number : {0U, 1U}) {
        const GeneratedSample all = sample_of(whole, number), some = sample_of(part, number);
        const ClimateWindow window = part.window(Split::training, number);
        std::size_t different = 0;
        for (int channel = 0; channel < kClimateChannels; ++channel) {
            for (int row = 0; row < 128; ++row) {
                for (int column = 0; column < 192; ++column) {
                    const auto in_all = static_cast<std::size_t>(
                        (channel * kClimateRows + row + window.row) * kClimateColumns + column +
                        window.column);
                    const auto in_some =
                        static_cast<std::size_t>((channel * 128 + row) * 192 + column);
                    different += all.fields[in_all] != some.fields[in_some];
                }
            }
        }
        EXPECT_EQ(different, 0U) << "sample " << number;
    }
    EXPECT_EQ(whole.window(Split::training, 0).row, 0);
    EXPECT_EQ(whole.window(Split::training, 0).column, 0);
}

TEST(ClimateGenerator, BothLayoutsHoldTheSameValues) {
    const ClimateGenerator generator(small_window());
    const GeneratedSample first = sample_of(generator, 5);
    const GeneratedSample last =
        sample_of(generator, 5, Split::training, FieldLayout::channels_last);
    EXPECT_EQ(first.boxes, last.boxes);
    constexpr std::size_t kPixels = 128 * 192;
    for (std::size_t pixel = 0; pixel < kPixels; pixel += 7) {
        for (std::size_t channel = 0; channel < kClimateChannels; ++channel) {
            ASSERT_EQ(first.fields[channel * kPixels + pixel],
                      last.fields[pixel * kClimateChannels + channel]);
        }
    }
}

TEST(ClimateGenerator, WindowsShowEveryCategoryOftenEnough) {
    for (const auto& [height, width] : {std::pair{128, 192}, std::pair{192, 256}}) {
        ClimateSettings settings;
        settings.height = height;
        settings.width = width;
        const ClimateGenerator generator(settings);
        std::array<int, kClimateCategories + 1> count{};
        int empty = 0;
        for (std::uint32_t number = 0; number < 400; ++number) {
            const std::vector<Box> boxes = generator.boxes(Split::validation, number);
            empty += boxes.empty();
            for (const Box& box : boxes) {
                ASSERT_TRUE(box.category >= 1 && box.category <= kClimateCategories);
                ++count[static_cast<std::size_t>(box.category)];
                EXPECT_GE(box.x1, 0);
                EXPECT_GE(box.y1, 0);
                EXPECT_LE(box.x2, static_cast<float>(width));
                EXPECT_LE(box.y2, static_cast<float>(height));
                EXPECT_GE(std::min(box.x2 - box.x1, box.y2 - box.y1), 8);
                EXPECT_EQ(box.x1, std::floor(box.x1));
            }
        }
        for (std::size_t category = 1; category < count.size(); ++category) {
            EXPECT_GE(count[category], 50) << kClimateCategoryNames[category - 1];
        }
        EXPECT_GT(empty, 0);
    }
}

TEST(ClimateGenerator, BoxesAloneAreThoseOfTheSample) {
    const ClimateGenerator generator(small_window());
    for (const std::uint32_t number : {0U, 1U, 2U, 3U}) {
        EXPECT_EQ(generator.boxes(Split::training, number), sample_of(generator, number).boxes);
    }
}

TEST(ClimateGenerator, DropoutHidesBoxesAndNothingElse) {
    ClimateSettings settings = small_window();
    settings.label_dropout = 0;
    const GeneratedSample labelled = sample_of(ClimateGenerator(settings), 0);
    settings.label_dropout = 1;
    const GeneratedSample bare = sample_of(ClimateGenerator(settings), 0);
    EXPECT_EQ(bare.fields, labelled.fields);
    EXPECT_FALSE(labelled.boxes.empty());
    EXPECT_TRUE(bare.boxes.empty());
}

/// The pressure drop of the only low in a sample, compared with the same weather without the low.
struct PaintedLow {
    const GeneratedSample& sample;
    const GeneratedSample& bare;
    int height, width;

    const Box& box() const { return sample.boxes[0]; }
    int middle_row() const { return static_cast<int>((box().y1 + box().y2) / 2); }
    int middle_column() const { return static_cast<int>((box().x1 + box().x2) / 2); }
    double depth(int row, int column) const {
        const std::size_t at = static_cast<std::size_t>(
            (static_cast<int>(index_of(ClimateChannel::sea_level_pressure)) * height + row) *
                width +
            column);
        return bare.fields[at] - sample.fields[at];
    }
    /// Returns the distance from the Gaussian's middle to a pixel in standard deviations.
    double deviations(int row, int column) const {
        return std::sqrt(2 * std::log(depth(middle_row(), middle_column()) / depth(row, column)));
    }
};

TEST(ClimateGenerator, BoxesOfLowsReachAsFarAsTheLowsBothWays) {
    ClimateSettings settings;
    settings.height = 160;
    settings.width = 224;
    settings.event_rate = 0.3;
    settings.distractor_rate = 0;
    settings.label_dropout = settings.intensity_spread = settings.extent_spread = 0;
    settings.event_windows = settings.kept_share = 1;
    ClimateSettings nothing = settings;
    nothing.amplitude = 0;
    const ClimateGenerator painted(settings), unpainted(nothing);
    double shift_x = 0, shift_y = 0;
    int lows = 0;
    for (std::uint32_t number = 0; number < 120; ++number) {
        const std::vector<Box> boxes = painted.boxes(Split::training, number);
        if (boxes.size() != 1 || boxes[0].category != 3) continue;
        if (boxes[0].x1 < 1 || boxes[0].y1 < 1 || boxes[0].x2 >= 223 || boxes[0].y2 >= 159) {
            continue;
        }
        const GeneratedSample sample = sample_of(painted, number),
                              bare = sample_of(unpainted, number);
        const PaintedLow low{sample, bare, settings.height, settings.width};
        const int top = static_cast<int>(low.box().y1), bottom = static_cast<int>(low.box().y2) - 1;
        const int left = static_cast<int>(low.box().x1), right = static_cast<int>(low.box().x2) - 1;
        const double reach[]{
            low.deviations(top, low.middle_column()), low.deviations(bottom, low.middle_column()),
            low.deviations(low.middle_row(), left), low.deviations(low.middle_row(), right)};
        for (const double deviations : reach) EXPECT_NEAR(deviations, 1.7, 0.25) << number;
        shift_y += reach[0] - reach[1];
        shift_x += reach[2] - reach[3];
        ++lows;
    }
    ASSERT_GE(lows, 10);
    // A shift of a quarter of a pixel is 0.02 deviations and changes both sides in opposite ways.
    EXPECT_NEAR(shift_x / lows, 0, 0.04);
    EXPECT_NEAR(shift_y / lows, 0, 0.04);
}

struct Moments {
    double weight = 0, sum = 0, squares = 0;
    double mean() const { return sum / weight; }
    double deviation() const { return std::sqrt(squares / weight - mean() * mean()); }
};

/// The pressure drop of the only tropical low in a sample, in Pa, by category - 1.
struct TropicalDepths {
    std::vector<double> of_depressions, of_cyclones;
};

TropicalDepths tropical_depths(double intensity_spread) {
    ClimateSettings settings = small_window();
    settings.event_rate = 0.5;
    settings.distractor_rate = settings.label_dropout = 0;
    settings.event_windows = settings.kept_share = 1;
    settings.intensity_spread = intensity_spread;
    ClimateSettings nothing = settings;
    nothing.amplitude = 0;
    const ClimateGenerator painted(settings), unpainted(nothing);
    TropicalDepths depths;
    for (std::uint32_t number = 0; number < 150; ++number) {
        const std::vector<Box> boxes = painted.boxes(Split::training, number);
        if (boxes.size() != 1 || boxes[0].category > 2) continue;
        const GeneratedSample sample = sample_of(painted, number),
                              bare = sample_of(unpainted, number);
        const PaintedLow low{sample, bare, settings.height, settings.width};
        auto& list = boxes[0].category == 1 ? depths.of_depressions : depths.of_cyclones;
        list.push_back(low.depth(low.middle_row(), low.middle_column()));
    }
    return depths;
}

TEST(ClimateGenerator, StrengthDistinguishesDepressionsFromCyclonesUnlessItIsSpread) {
    const TropicalDepths sharp = tropical_depths(0), spread = tropical_depths(0.6);
    ASSERT_GE(std::min(sharp.of_depressions.size(), sharp.of_cyclones.size()), 10U);
    EXPECT_LT(std::ranges::max(sharp.of_depressions), std::ranges::min(sharp.of_cyclones));
    const double weakest_cyclone = std::ranges::min(spread.of_cyclones);
    EXPECT_GT(std::ranges::count_if(spread.of_depressions,
                                    [&](double depth) { return depth > weakest_cyclone; }),
              2);
}

TEST(ClimateGenerator, SpreadBoxesHaveTheirSidesAroundTheVisibleOnes) {
    ClimateSettings settings;
    settings.label_dropout = 0;
    settings.event_rate = 0.5;
    settings.extent_spread = 0;
    const ClimateGenerator exact(settings);
    settings.extent_spread = 0.25;
    const ClimateGenerator spread(settings);
    Moments ratio;
    for (std::uint32_t number = 0; number < 100; ++number) {
        const std::vector<Box> seen = exact.boxes(Split::training, number);
        const std::vector<Box> boxes = spread.boxes(Split::training, number);
        if (seen.size() != boxes.size()) continue;  // a box shrank below 8 pixels
        for (std::size_t i = 0; i < boxes.size(); ++i) {
            ASSERT_EQ(boxes[i].category, seen[i].category);
            if (boxes[i].category == 4) continue;
            const double log_ratio =
                std::log((boxes[i].x2 - boxes[i].x1) / (seen[i].x2 - seen[i].x1));
            ratio.weight += 1;
            ratio.sum += log_ratio;
            ratio.squares += log_ratio * log_ratio;
        }
    }
    EXPECT_NEAR(ratio.mean(), 0, 0.05);
    EXPECT_NEAR(ratio.deviation(), 0.25, 0.05);  // 0.24 after cutting at two deviations
}

TEST(ClimateGenerator, WindowsHoldTheEventWhereverTheyAreLaid) {
    ClimateSettings settings = small_window();
    settings.event_windows = 1;
    settings.label_dropout = settings.distractor_rate = 0;
    const ClimateGenerator generator(settings);
    int at_the_edge = 0, events = 0;
    for (std::uint32_t number = 0; number < 1000; ++number) {
        const ClimateWindow window = generator.window(Split::training, number);
        events += !generator.boxes(Split::training, number).empty();
        at_the_edge += window.column == 0 || window.column == kClimateColumns - settings.width;
    }
    EXPECT_GT(events, 900);
    EXPECT_LT(at_the_edge, 20);
}

/// Area-weighted statistics of the CAM5 snapshots that public training sets of DeepCAM state. Those
/// sets extrapolate PSL and Z1000 below mountains, so PSL's deviation is ClimateNet's and Z1000 is
/// omitted.
struct Published {
    ClimateChannel channel;
    double mean, deviation;
};
constexpr std::array<Published, 15> kPublished{{
    {ClimateChannel::precipitation, 3.765611e-08, 1.8771327e-07},
    {ClimateChannel::surface_pressure, 98356.03, 7778.5957},
    {ClimateChannel::sea_level_pressure, 100982.02, 1461.2227},
    {ClimateChannel::reference_humidity, 0.010749293, 0.006383436},
    {ClimateChannel::temperature_200, 216.13145, 9.791707},
    {ClimateChannel::temperature_500, 258.9456, 14.35133},
    {ClimateChannel::precipitable_water, 26.160023, 17.04294},
    {ClimateChannel::reference_temperature, 288.03925, 19.094095},
    {ClimateChannel::surface_temperature, 288.82578, 19.866386},
    {ClimateChannel::zonal_wind_850, 0.98314494, 8.164175},
    {ClimateChannel::zonal_wind_bottom, -0.45998842, 6.4967732},
    {ClimateChannel::meridional_wind_850, 0.116573125, 5.6868863},
    {ClimateChannel::meridional_wind_bottom, 0.1930554, 5.4465833},
    {ClimateChannel::geopotential_height_200, 12031.449, 679.5602},
    {ClimateChannel::bottom_height, 63.435772, 4.2283397},
}};
constexpr double kMeanBand = 0.25;                            // of the published deviation
constexpr double kMinDeviation = 0.65, kMaxDeviation = 1.35;  // of the published deviation

TEST(ClimateGenerator, AgreesWithPublishedStatistics) {
    const ClimateGenerator generator({});
    std::array<Moments, kClimateChannels> moments;
    constexpr std::size_t kPixels = std::size_t{kClimateRows} * kClimateColumns;
    for (std::uint32_t number = 0; number < 6; ++number) {
        const GeneratedSample sample = sample_of(generator, number);
        for (std::size_t channel = 0; channel < kClimateChannels; ++channel) {
            Moments& m = moments[channel];
            for (std::size_t pixel = 0; pixel < kPixels; pixel += 5) {
                const auto row = static_cast<double>(pixel / kClimateColumns);
                const double weight = std::sin(std::numbers::pi * row / (kClimateRows - 1));
                const double value = sample.fields[channel * kPixels + pixel];
                ASSERT_TRUE(std::isfinite(value));
                m.weight += weight;
                m.sum += weight * value;
                m.squares += weight * value * value;
            }
        }
    }
    for (const Published& published : kPublished) {
        const Moments& m = moments[index_of(published.channel)];
        const char* const name = kClimateChannelNames[index_of(published.channel)];
        EXPECT_NEAR(m.mean(), published.mean, kMeanBand * published.deviation) << name;
        EXPECT_GE(m.deviation(), kMinDeviation * published.deviation) << name;
        EXPECT_LE(m.deviation(), kMaxDeviation * published.deviation) << name;
    }
}

TEST(ClimateGenerator, RejectsSidesOutOfRange) {
    for (const auto& change : std::initializer_list<void (*)(ClimateSettings&)>{
             [](ClimateSettings& s) { s.height = 63; }, [](ClimateSettings& s) { s.height = 769; },
             [](ClimateSettings& s) { s.width = 1153; }}) {
        ClimateSettings settings;
        change(settings);
        try {
            const ClimateGenerator generator(settings);
            ADD_FAILURE() << "no error";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::usage) << error.what();
        }
    }
}

}  // namespace
}  // namespace hpcai::data
