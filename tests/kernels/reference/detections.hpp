// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/proposals.hpp"

namespace hpcai::kernels::reference {

struct ScoredBox {
    float score;
    int label, region;
    ops::Box box;
};

inline bool is_better(const ScoredBox& a, const ScoredBox& b) {
    if (a.score != b.score) return a.score > b.score;
    return a.label != b.label ? a.label < b.label : a.region < b.region;
}

inline float score_of(const DetectionsShape& shape, const float* logits, int label) {
    const float highest = *std::max_element(logits, logits + shape.classes);
    double sum = 0;
    for (int k = 0; k < shape.classes; ++k) sum += std::exp(logits[k] - highest);
    return static_cast<float>(std::exp(logits[label] - highest) / sum);
}

/// Returns the boxes of a class that suppression keeps.
inline std::vector<ScoredBox> of_class(const DetectionsShape& shape, const DetectionsArguments& of,
                                       std::int64_t image, int label) {
    std::vector<ScoredBox> all, kept;
    for (int region = 0; region < shape.regions; ++region) {
        const std::int64_t row = image * shape.regions + region;
        const float* deltas = of.deltas + (row * shape.classes + label) * 4;
        const float score = score_of(shape, of.logits + row * shape.classes, label);
        ops::Box box = ops::decode({deltas[0], deltas[1], deltas[2], deltas[3]},
                                   ops::box_of(of.proposals + row * 5), shape.coder);
        const bool used = of.proposals[row * 5 + 4] >= 0 && score > shape.score_threshold;
        if (used && clip_to_image(box, shape.bounds)) all.push_back({score, label, region, box});
    }
    std::sort(all.begin(), all.end(), is_better);
    for (const ScoredBox& at : all) {
        const bool overlaps = std::any_of(kept.begin(), kept.end(), [&](const ScoredBox& better) {
            return ops::iou_of(better.box, at.box) > shape.nms_iou;
        });
        if (!overlaps) kept.push_back(at);
    }
    return kept;
}

inline void detections(const DetectionsShape& shape, const DetectionsArguments& arguments, Stream) {
    float* row = arguments.detections;
    for (std::int64_t image = 0; image < shape.images; ++image) {
        std::vector<ScoredBox> all;
        for (int label = 1; label < shape.classes; ++label) {
            const auto some = of_class(shape, arguments, image, label);
            all.insert(all.end(), some.begin(), some.end());
        }
        std::sort(all.begin(), all.end(), is_better);
        all.resize(static_cast<std::size_t>(shape.limit));  // with zeros
        for (const ScoredBox& at : all) {
            for (const float number : {at.box.x1, at.box.y1, at.box.x2, at.box.y2, at.score,
                                       static_cast<float>(at.label)}) {
                *row++ = number;
            }
        }
    }
}

}  // namespace hpcai::kernels::reference
