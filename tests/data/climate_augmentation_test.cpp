// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/data/climate_channels.hpp>

#include "data/climate_set.hpp"

namespace hpcai::data {
namespace {

constexpr ImageSize kSize{5, 3};
constexpr std::size_t kChannels = kClimateChannels;

std::size_t at(int row, int column, std::size_t channel) {
    return (static_cast<std::size_t>(row) * 5 + static_cast<std::size_t>(column)) * kChannels +
           channel;
}

/// The statistics of fields in physical units.
const ChannelStatistics kPhysical{std::vector(16, 0.0), std::vector(16, 1.0)};

/// Returns fields with a different number in each element.
std::vector<float> numbered_fields() {
    std::vector<float> fields(3 * 5 * kChannels);
    for (std::size_t i = 0; i < fields.size(); ++i) fields[i] = static_cast<float>(i + 1);
    return fields;
}

TEST(ClimateAugmentation, ARollMovesColumnsAndBoxesEastwardAroundTheEarth) {
    const std::vector<float> before = numbered_fields();
    std::vector<float> after = before;
    std::vector<Box> boxes{{0, 0, 2, 2, 1}, {3, 1, 5, 3, 2}, {1, 0, 4, 1, 3}};
    roll_longitude(after, kSize, 2, boxes);
    for (int row = 0; row < 3; ++row) {
        for (int column = 0; column < 5; ++column) {
            for (std::size_t channel = 0; channel < kChannels; ++channel) {
                EXPECT_EQ(after[at(row, (column + 2) % 5, channel)],
                          before[at(row, column, channel)]);
            }
        }
    }
    // The second box wraps around entirely; the third would cross the seam.
    EXPECT_EQ(boxes, (std::vector<Box>{{2, 0, 4, 2, 1}, {0, 1, 2, 3, 2}}));
}

TEST(ClimateAugmentation, ARollByNothingChangesNothing) {
    std::vector<float> fields = numbered_fields();
    std::vector<Box> boxes{{3, 1, 5, 3, 2}};
    roll_longitude(fields, kSize, 0, boxes);
    EXPECT_EQ(fields, numbered_fields());
    EXPECT_EQ(boxes, (std::vector<Box>{{3, 1, 5, 3, 2}}));
}

TEST(ClimateAugmentation, AHemisphereFlipReversesRowsAndNorthwardWindsOnly) {
    const std::vector<float> before = numbered_fields();
    std::vector<float> after = before;
    std::vector<Box> boxes{{1, 0, 3, 2, 4}};
    flip_hemispheres(after, kSize, boxes, kPhysical);
    for (int row = 0; row < 3; ++row) {
        for (int column = 0; column < 5; ++column) {
            for (std::size_t channel = 0; channel < kChannels; ++channel) {
                const float sign = channel == 11 || channel == 12 ? -1.0F : 1.0F;
                EXPECT_EQ(after[at(2 - row, column, channel)],
                          sign * before[at(row, column, channel)]);
            }
        }
    }
    EXPECT_EQ(boxes, (std::vector<Box>{{1, 1, 3, 3, 4}}));
}

TEST(ClimateAugmentation, NormalizedWindsKeepTheirMeanWhenFlipped) {
    std::vector<double> mean(kChannels), deviation(kChannels);
    for (std::size_t channel = 0; channel < kChannels; ++channel) {
        mean[channel] = 0.5 * static_cast<double>(channel) - 3;
        deviation[channel] = 1 + static_cast<double>(channel);
    }
    const auto normalized = [&](std::vector<float> fields) {
        for (std::size_t i = 0; i < fields.size(); ++i) {
            const std::size_t channel = i % kChannels;
            fields[i] = static_cast<float>((fields[i] - mean[channel]) / deviation[channel]);
        }
        return fields;
    };
    std::vector<Box> boxes;
    std::vector<float> physical = numbered_fields(), fields = normalized(numbered_fields());
    flip_hemispheres(physical, kSize, boxes, kPhysical);
    flip_hemispheres(fields, kSize, boxes, {mean, deviation});
    const std::vector<float> expected = normalized(physical);
    for (std::size_t i = 0; i < fields.size(); ++i) EXPECT_NEAR(fields[i], expected[i], 2e-5);
}

}  // namespace
}  // namespace hpcai::data
