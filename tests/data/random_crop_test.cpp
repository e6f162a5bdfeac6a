// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include <hpcai/data/transforms.hpp>

#include "support/largest_error.hpp"
#include "support/reference_json.hpp"

namespace hpcai::data {
namespace {

constexpr std::size_t kBins = 20;
using Histogram = std::array<double, kBins>;

std::size_t bin_of(double value, double low, double high) {
    const double place = (value - low) / (high - low) * static_cast<double>(kBins);
    return static_cast<std::size_t>(std::clamp(place, 0.0, static_cast<double>(kBins) - 1));
}

/// Crops drawn by the program, counted in the bins of torchvision's crops (bins_of() in
/// random_crop_cases.py).
struct Draws {
    std::map<std::string, Histogram> counts;
    int fallbacks = 0;
};

Draws draw(const nlohmann::json& entry, double log_ratio) {
    const ImageSize size{entry["width"], entry["height"]};
    const auto& box = entry["fallback"];
    const PixelBox fallback{box[0], box[1], box[2], box[3]};
    Draws draws;
    const auto add = [&draws](const char* name, double value, double low, double high) {
        ++draws.counts[name][bin_of(value, low, high)];
    };
    for (std::uint32_t i = 0; i < entry["draws"].get<std::uint32_t>(); ++i) {
        CounterStream random(17, RandomPurpose::augmentation, 0, i);
        const PixelBox crop =
            draw_training_view(size, {entry["area_minimum"], 0.5, 0.5}, random).crop;
        draws.fallbacks += crop == fallback;
        add("area", static_cast<double>(crop.width) * crop.height / size.width / size.height, 0, 1);
        add("ratio", std::log(static_cast<double>(crop.width) / crop.height), -log_ratio,
            log_ratio);
        add("left", (crop.left + 0.5) / (size.width - crop.width + 1), 0, 1);
        add("top", (crop.top + 0.5) / (size.height - crop.height + 1), 0, 1);
    }
    return draws;
}

/// Returns Pearson's statistic of two samples of equal size, divided by its 0.1 % critical value
/// (Wilson and Hilferty's approximation).
double chi_square_excess(const Histogram& a, const Histogram& b) {
    double statistic = 0;
    double freedom = -1;
    for (std::size_t i = 0; i < kBins; ++i) {
        if (a[i] + b[i] == 0) continue;
        statistic += (a[i] - b[i]) * (a[i] - b[i]) / (a[i] + b[i]);
        ++freedom;
    }
    constexpr double kNormalQuantile = 3.0902;  // 0.1 %
    const double spread = 2 / (9 * freedom);
    return statistic / (freedom * std::pow(1 - spread + kNormalQuantile * std::sqrt(spread), 3));
}

/// Returns the largest difference of the distribution functions.
double kolmogorov_distance(const Histogram& a, const Histogram& b, double draws) {
    double largest = 0, sum = 0;
    for (std::size_t i = 0; i < kBins; ++i) {
        sum += (a[i] - b[i]) / draws;
        largest = std::max(largest, std::abs(sum));
    }
    return largest;
}

class RandomCrop : public testing::Test {
protected:
    nlohmann::json reference_ = tests::read_reference_json("random_crop.json");
};

TEST_F(RandomCrop, IsDistributedAsTorchvisionsRandomResizedCrop) {
    tests::LargestError chi_square("random crop, chi-square over its 0.1 % critical value", 1);
    tests::LargestError kolmogorov("random crop, distance of distribution functions", 6.2e-3);
    tests::LargestError fallbacks("random crop, central crops in standard deviations", 3.3);
    for (const auto& entry : reference_["cases"]) {
        const Draws draws = draw(entry, reference_["log_ratio"]);
        const double count = entry["draws"];
        for (const auto& [name, got] : draws.counts) {
            const Histogram want = entry[name];
            const auto where = fmt::format("{} of {}", name, entry["width"].dump());
            chi_square.add(chi_square_excess(got, want), where);
            kolmogorov.add(kolmogorov_distance(got, want, count), where);
        }
        const double expected = entry["fallbacks"];
        fallbacks.add(std::abs(draws.fallbacks - expected) /
                      std::sqrt(std::max(1.0, expected + draws.fallbacks)));
    }
}

TEST_F(RandomCrop, IsTheOneThatTorchvisionMakesOfTheSameRandomNumbers) {
    for (const auto& entry : reference_["cases"]) {
        const Augmentation augmentation{entry["area_minimum"], reference_["flips"][0],
                                        reference_["flips"][1]};
        std::uint32_t sample = 0;
        for (const auto& want : entry["views"]) {
            CounterStream random(reference_["seed"], RandomPurpose::augmentation,
                                 reference_["model"], sample++,
                                 reference_["epoch"].get<std::uint32_t>() << 16);
            const TrainingView got =
                draw_training_view({entry["width"], entry["height"]}, augmentation, random);
            EXPECT_EQ(got.crop, (PixelBox{want[0], want[1], want[2], want[3]})) << want;
            EXPECT_EQ(got.flip, want[4] == 1) << want;
            EXPECT_EQ(got.vertical_flip, want[5] == 1) << want;
        }
        EXPECT_EQ(sample, 100U);
    }
}

TEST_F(RandomCrop, FallsBackToTorchvisionsCentralCropAfterTenMisses) {
    for (const auto& entry : reference_["cases"]) {
        const auto& box = entry["fallback"];
        CounterStream random(17, RandomPurpose::test);
        // Areas larger than the image do not fit.
        const TrainingView view =
            draw_training_view({entry["width"], entry["height"]}, {100, 0, 0}, random);
        EXPECT_EQ(view.crop, (PixelBox{box[0], box[1], box[2], box[3]}));
        // Ten attempts of two 64-bit numbers and two flips are consumed; the stream continues after
        // them.
        CounterStream same(17, RandomPurpose::test);
        for (int i = 0; i < 22; ++i) same.uniform();
        EXPECT_EQ(random.next_u32(), same.next_u32());
    }
}

}  // namespace
}  // namespace hpcai::data
