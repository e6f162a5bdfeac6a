// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include <hpcai/base/philox.hpp>
#include <hpcai/evaluation/detection.hpp>

namespace hpcai::evaluation {

/// Settings of random test sets with few distinct coordinates and scores, so that many are equal.
struct RandomSet {
    std::uint32_t images = 5;
    std::uint32_t categories = 3;
    std::uint32_t boxes = 20;
    std::uint32_t detections = 40;
    std::uint32_t scores = 10;  // distinct scores
};

inline Box random_box(CounterStream& stream) {
    return {4.0 * stream.below(6), 4.0 * stream.below(6), 4.0 + 4.0 * stream.below(5),
            4.0 + 4.0 * stream.below(5)};
}

inline DetectionTruth random_truth(const RandomSet& set, std::uint32_t number) {
    CounterStream stream(1, RandomPurpose::test, number, 1);
    DetectionTruth truth{set.images, static_cast<std::int32_t>(set.categories), {}};
    for (std::uint32_t index = 0; index < set.boxes; ++index) {
        truth.boxes.push_back({stream.below(set.images),
                               1 + static_cast<std::int32_t>(stream.below(set.categories)),
                               random_box(stream), stream.below(5) == 0});
    }
    return truth;
}

/// By ascending image.
inline std::vector<Detection> random_detections(const RandomSet& set, std::uint32_t number) {
    CounterStream stream(1, RandomPurpose::test, number, 2);
    std::vector<Detection> detections;
    for (std::uint32_t index = 0; index < set.detections; ++index) {
        const double score = (1 + stream.below(set.scores)) / static_cast<double>(set.scores);
        detections.push_back({stream.below(set.images),
                              1 + static_cast<std::int32_t>(stream.below(set.categories)), score,
                              random_box(stream)});
    }
    std::ranges::stable_sort(detections, {}, &Detection::image);
    return detections;
}

}  // namespace hpcai::evaluation
