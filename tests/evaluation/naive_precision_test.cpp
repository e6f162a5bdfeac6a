// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <hpcai/evaluation/average_precision.hpp>

#include "random_detections.hpp"

/// Compares with a second implementation without sorting: it repeatedly searches the remaining
/// detections for the first one of highest score.
namespace hpcai::evaluation {
namespace {

struct NaiveCounts {
    std::vector<std::uint8_t> hits;
    std::int64_t boxes = 0;
};

double naive_overlap(const Box& a, const Box& b, bool of_a_only) {
    // Coordinates are multiples of 4: areas are counted in squares.
    double both = 0, either = 0;
    for (double x = 0; x < 64; x += 4) {
        for (double y = 0; y < 64; y += 4) {
            const auto has = [&](const Box& box) {
                return x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height;
            };
            both += has(a) && has(b);
            either += has(a) || (has(b) && !of_a_only);
        }
    }
    return both / either;
}

class NaiveMatcher {
public:
    NaiveMatcher(const DetectionTruth& truth, std::int32_t category, double threshold)
        : truth_(truth), category_(category), threshold_(threshold), taken_(truth.boxes.size()) {}

    enum class Outcome { hit, miss, crowd };

    Outcome take(const Detection& detection) {
        int best = -1;
        double most = threshold_;
        for (const bool crowds : {false, true}) {
            if (best >= 0) break;
            for (std::size_t index = 0; index < taken_.size(); ++index) {
                const LabelledBox& box = truth_.boxes[index];
                if (box.image != detection.image || box.category != category_) continue;
                if (box.crowd != crowds || (taken_[index] && !crowds)) continue;
                const double overlap = naive_overlap(detection.box, box.box, crowds);
                if (overlap < most) continue;
                most = overlap;
                best = static_cast<int>(index);
            }
        }
        if (best < 0) return Outcome::miss;
        taken_[static_cast<std::size_t>(best)] = true;
        return truth_.boxes[static_cast<std::size_t>(best)].crowd ? Outcome::crowd : Outcome::hit;
    }

private:
    const DetectionTruth& truth_;
    std::int32_t category_;
    double threshold_;
    std::vector<bool> taken_;
};

NaiveCounts naive_counts(const DetectionTruth& truth, const std::vector<Detection>& detections,
                         std::int32_t category, double threshold) {
    NaiveMatcher matcher(truth, category, threshold);
    NaiveCounts counts;
    std::vector<bool> done(detections.size());
    std::vector<std::int64_t> per_image(static_cast<std::size_t>(truth.images));
    for (std::size_t round = 0; round < detections.size(); ++round) {
        int best = -1;
        for (std::size_t index = 0; index < detections.size(); ++index) {
            const bool better = best < 0 || detections[index].score >
                                                detections[static_cast<std::size_t>(best)].score;
            if (!done[index] && detections[index].category == category && better) {
                best = static_cast<int>(index);
            }
        }
        if (best < 0) break;
        done[static_cast<std::size_t>(best)] = true;
        const Detection& detection = detections[static_cast<std::size_t>(best)];
        if (++per_image[static_cast<std::size_t>(detection.image)] > 100) continue;
        const auto outcome = matcher.take(detection);
        if (outcome == NaiveMatcher::Outcome::crowd) continue;
        counts.hits.push_back(outcome == NaiveMatcher::Outcome::hit);
    }
    for (const LabelledBox& box : truth.boxes) {
        counts.boxes += box.category == category && !box.crowd;
    }
    return counts;
}

double naive_precision(const NaiveCounts& counts) {
    double sum = 0;
    for (int index = 0; index <= 100; ++index) {
        const double recall = index == 100 ? 1 : 0.01 * index;
        double best = 0, right = 0;
        for (std::size_t n = 0; n < counts.hits.size(); ++n) {
            right += counts.hits[n];
            if (right / static_cast<double>(counts.boxes) < recall) continue;
            best = std::max(best, right / static_cast<double>(n + 1));
        }
        sum += best;
    }
    return sum / 101;
}

void compare(const RandomSet& set, std::uint32_t number, double threshold) {
    const DetectionTruth truth = random_truth(set, number);
    const std::vector<Detection> detections = random_detections(set, number);
    const DetectionQuality got = detection_quality(truth, detections, threshold);
    for (std::int32_t category = 1; category <= truth.categories; ++category) {
        const CategoryQuality& quality = got.categories[static_cast<std::size_t>(category - 1)];
        const NaiveCounts naive = naive_counts(truth, detections, category, threshold);
        const std::string at = fmt::format("set {}, category {}", number, category);
        EXPECT_EQ(quality.boxes, naive.boxes) << at;
        EXPECT_EQ(quality.detections, static_cast<std::int64_t>(naive.hits.size())) << at;
        ASSERT_EQ(quality.precision.has_value(), naive.boxes > 0) << at;
        if (quality.precision) {
            EXPECT_NEAR(quality.precision->coco, naive_precision(naive), 1e-14) << at;
        }
    }
}

TEST(NaivePrecision, IsThatOfRandomSetsWithManyEquals) {
    for (std::uint32_t number = 0; number < 60; ++number) {
        compare({}, number, 0.5);
        compare({.images = 2, .boxes = 30, .detections = 80, .scores = 3}, number, 0.1);
    }
}

TEST(NaivePrecision, IsThatOfSetsWithMoreThanAHundredDetectionsAnImage) {
    for (std::uint32_t number = 0; number < 4; ++number) {
        compare({.images = 1, .categories = 1, .boxes = 80, .detections = 160}, number, 0.5);
    }
}

TEST(NaivePrecision, IsThatOfSetsMostlyEmpty) {
    for (std::uint32_t number = 0; number < 40; ++number) {
        compare({.images = 20, .categories = 6, .boxes = 4, .detections = 5}, number, 0.1);
        compare({.boxes = 5, .detections = 0}, number, 0.5);
        compare({.boxes = 0, .detections = 5}, number, 0.5);
    }
}

}  // namespace
}  // namespace hpcai::evaluation
