// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <hpcai/evaluation/average_precision.hpp>

#include "support/largest_error.hpp"
#include "support/reference_json.hpp"

/// Against tests/data/reference/metrics_detection.json, by scripts/reference/detection_cases.py.
namespace hpcai::evaluation {
namespace {

using nlohmann::json;

const json& reference() {
    static const json kReference = tests::read_reference_json("metrics_detection.json");
    return kReference;
}

Box box_in(const json& row) {
    return {row[2], row[3], row[4], row[5]};
}

DetectionTruth truth_of(const json& one) {
    DetectionTruth truth{one["images"], one["categories"], {}};
    for (const json& row : one["boxes"]) {
        truth.boxes.push_back({row[0], row[1], box_in(row), row[6] == 1});
    }
    return truth;
}

std::vector<Detection> detections_of(const json& one) {
    std::vector<Detection> detections;
    for (const json& row : one["detections"]) {
        detections.push_back({row[0], row[1], row[6], box_in(row)});
    }
    return detections;
}

/// Calls compare(actual, expected, place) for every test set and threshold.
template <typename Compare>
void for_each_quality(Compare compare) {
    std::size_t number = 0;
    for (const json& one : reference()["precision"]) {
        for (const json& wanted : one["quality"]) {
            const double threshold = wanted["threshold"];
            compare(detection_quality(truth_of(one), detections_of(one), threshold), wanted,
                    fmt::format("test set {} at {}", number, threshold));
        }
        ++number;
    }
}

TEST(AveragePrecisionOfDetections, AgreesWithPycocotools) {
    // double: the same sums in another order; the benchmark only promises 1e-4
    tests::LargestError error("COCO average precision of a category, fp64", 1e-14);
    tests::LargestError mean_error("COCO average precision, mean over categories, fp64", 1e-14);
    for_each_quality([&](const DetectionQuality& got, const json& wanted, const std::string& at) {
        for (std::size_t index = 0; index < got.categories.size(); ++index) {
            const auto& precision = got.categories[index].precision;
            const json& row = wanted["categories"][index];
            ASSERT_EQ(precision.has_value(), row.contains("coco")) << at;
            if (precision) error.add(std::abs(precision->coco - row["coco"].get<double>()), at);
        }
        ASSERT_EQ(got.mean.has_value(), !wanted["mean"].is_null()) << at;
        if (got.mean) mean_error.add(std::abs(got.mean->coco - wanted["mean"].get<double>()), at);
    });
}

TEST(AveragePrecisionOfDetections, HasPascalVocsMeansOfTheSameMatches) {
    // double, against fractions
    tests::LargestError area_error("VOC average precision by area, fp64", 1e-14);
    tests::LargestError eleven_error("VOC average precision at 11 recalls, fp64", 1e-14);
    for_each_quality([&](const DetectionQuality& got, const json& wanted, const std::string& at) {
        for (std::size_t index = 0; index < got.categories.size(); ++index) {
            const auto& precision = got.categories[index].precision;
            const json& row = wanted["categories"][index];
            if (!precision) continue;
            area_error.add(std::abs(precision->voc_area - row["voc_area"].get<double>()), at);
            eleven_error.add(std::abs(precision->voc_2007 - row["voc_2007"].get<double>()), at);
        }
    });
}

TEST(AveragePrecisionOfDetections, CountsAsPycocotoolsDoes) {
    tests::LargestError error("boxes, detections and hits that differ from pycocotools", 0);
    for_each_quality([&](const DetectionQuality& got, const json& wanted, const std::string& at) {
        for (std::size_t index = 0; index < got.categories.size(); ++index) {
            const CategoryQuality& category = got.categories[index];
            const json& row = wanted["categories"][index];
            error.add(category.boxes != row["boxes"], at);
            error.add(category.detections != row["detections"], at);
            error.add(category.hits != row["hits"], at);
        }
    });
}

}  // namespace
}  // namespace hpcai::evaluation
