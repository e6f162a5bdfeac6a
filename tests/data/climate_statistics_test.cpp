// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <hpcai/data/climate_generator.hpp>

#include "real_data.hpp"

namespace hpcai::data {
namespace {

constexpr int kGridHeight = 128, kGridWidth = 192;
constexpr double kBand = 2;  // deviations of the real points

using ChannelMeans = std::array<double, kClimateChannels>;

/// Returns the means over the pixels in the boxes of each category, by category - 1.
std::array<ChannelMeans, kClimateCategories> means_in_boxes() {
    ClimateSettings settings;
    settings.height = kGridHeight;
    settings.width = kGridWidth;
    const ClimateGenerator generator(settings);
    std::array<ChannelMeans, kClimateCategories> means{};
    std::array<double, kClimateCategories> pixels{};
    std::vector<float> fields(generator.elements());
    std::vector<Box> boxes;
    for (std::uint32_t number = 0; number < 150; ++number) {
        if (generator.boxes(Split::training, number).empty()) continue;
        generator.sample(Split::training, number, FieldLayout::channels_last, fields, boxes);
        for (const Box& box : boxes) {
            const auto category = static_cast<std::size_t>(box.category) - 1;
            for (int y = static_cast<int>(box.y1); y < static_cast<int>(box.y2); ++y) {
                for (int x = static_cast<int>(box.x1); x < static_cast<int>(box.x2); ++x) {
                    const auto at =
                        static_cast<std::size_t>((y * kGridWidth + x) * kClimateChannels);
                    for (std::size_t c = 0; c < kClimateChannels; ++c) {
                        means[category][c] += fields[at + c];
                    }
                    ++pixels[category];
                }
            }
        }
    }
    for (std::size_t category = 0; category < means.size(); ++category) {
        for (double& mean : means[category]) mean /= pixels[category];
    }
    return means;
}

TEST(ClimateGenerator, StormsLookLikeThoseThatExpertsMarked) {
    const auto path = real_data("climatenet_point_statistics.json");
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent";
    std::ifstream in(path);
    const auto real = nlohmann::json::parse(in);
    const auto means = means_in_boxes();
    for (const auto& [name, category] :
         {std::pair{"tropical_cyclone", ClimateCategory::tropical_cyclone},
          std::pair{"atmospheric_river", ClimateCategory::atmospheric_river}}) {
        const auto& marked = real["classes"][name];
        for (std::size_t i = 0; i < kClimateChannels; ++i) {
            const std::string channel = real["channels"][i];
            const auto place =
                std::find(kClimateChannelNames.begin(), kClimateChannelNames.end(), channel) -
                kClimateChannelNames.begin();
            ASSERT_LT(place, kClimateChannels);
            const double made =
                means[static_cast<std::size_t>(category) - 1][static_cast<std::size_t>(place)];
            EXPECT_NEAR(made, marked["mean"][i].get<double>(),
                        kBand * marked["std"][i].get<double>())
                << name << ' ' << channel;
        }
    }
}

TEST(ClimateGenerator, CyclonesAreDeeperWetterAndWarmerAloftThanDepressions) {
    const auto means = means_in_boxes();
    const auto mean = [&](ClimateCategory category, ClimateChannel channel) {
        return means[static_cast<std::size_t>(category) - 1][index_of(channel)];
    };
    const auto cyclone = ClimateCategory::tropical_cyclone;
    const auto depression = ClimateCategory::tropical_depression;
    EXPECT_LT(mean(cyclone, ClimateChannel::sea_level_pressure),
              mean(depression, ClimateChannel::sea_level_pressure));
    EXPECT_GT(mean(cyclone, ClimateChannel::precipitation),
              mean(depression, ClimateChannel::precipitation));
    EXPECT_GT(mean(cyclone, ClimateChannel::temperature_200),
              mean(depression, ClimateChannel::temperature_200));
}

}  // namespace
}  // namespace hpcai::data
