// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <hpcai/evaluation/detection.hpp>

/// What the metrics of detection and their confidence intervals share.
namespace hpcai::evaluation {

/// A detection that counts.
struct RankedDetection {
    std::int64_t image = 0;
    double score = 0;
    bool hit = false;
};

/// One category's.
struct CategoryMatches {
    std::vector<RankedDetection> ranked;     // best first
    std::vector<std::int64_t> image_of_box;  // of each box to find
};

/// By label - 1, as average_precision.hpp says. Throws Error(internal) for an image or a category
/// that `truth` does not have.
std::vector<CategoryMatches> match(const DetectionTruth& truth,
                                   std::span<const Detection> detections, double threshold);

}  // namespace hpcai::evaluation
