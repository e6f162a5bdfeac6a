// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/evaluation/detection.hpp>
#include <hpcai/evaluation/statistics.hpp>

namespace hpcai::evaluation {

struct RankedDetection {
    std::int64_t image = 0;
    double score = 0;
    bool hit = false;
};

struct CategoryMatches {
    std::vector<RankedDetection> ranked;     // best first
    std::vector<std::int64_t> image_of_box;  // [labelled box, without crowds]
};

/// Returns the matches [category - 1], as average_precision.hpp describes. Throws Error(internal)
/// for an image or a category that `truth` does not have.
std::vector<CategoryMatches> match(const DetectionTruth& truth,
                                   std::span<const Detection> detections, double threshold);

/// Returns the mean COCO precision of a draw of images, which contains image i times[i] times. The
/// mean is over the categories that have boxes in the draw; nothing if there are none.
std::optional<double> mean_precision_of_draw(std::span<const CategoryMatches> categories,
                                             std::span<const std::uint32_t> times);

}  // namespace hpcai::evaluation
