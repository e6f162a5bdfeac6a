// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace hpcai::evaluation {

/// COCO's limit: the evaluation uses at most this many detections per image and category, those of
/// highest score. A network outputs at most this many per image.
inline constexpr std::int64_t kDetectionsPerImage = 100;

/// A rectangle in pixels as in COCO: x to the right, y down. Right and bottom edges are exclusive.
struct Box {
    double x = 0;
    double y = 0;
    double width = 0;
    double height = 0;
    bool operator==(const Box&) const = default;
};

/// Returns the box from (x1, y1) to (x2, y2). If the corners are non-negative fp32 numbers, x +
/// width rounds to x2 in fp32 and y + height to y2, so files preserve the corners exactly.
Box box_from_corners(double x1, double y1, double x2, double y2);

double area(const Box& box);

/// Area of the intersection, computed as in pycocotools' bbIou; 0 if the boxes only touch.
double intersection_area(const Box& a, const Box& b);

/// Intersection over union, in [0, 1]; 0 for boxes that share no area.
double intersection_over_union(const Box& a, const Box& b);

/// One detected object.
struct Detection {
    std::int64_t image = 0;     // in [0, images)
    std::int32_t category = 0;  // 1 to the number of categories; 0 is background
    double score = 0;
    Box box;
    bool operator==(const Detection&) const = default;
};

inline constexpr double kMaxMagnitude = 1e9;  // of a valid score, coordinate or side

/// Returns whether no number exceeds kMaxMagnitude in magnitude and no side is negative. Metrics,
/// fusion and files ignore invalid detections.
bool is_valid(const Detection& detection);

/// The label of one object.
struct LabelledBox {
    std::int64_t image = 0;
    std::int32_t category = 0;
    Box box;
    bool crowd = false;  // COCO's iscrowd: may match any number of detections, or none
    bool operator==(const LabelledBox&) const = default;
};

/// The labels of a test set.
struct DetectionTruth {
    std::int64_t images = 0;
    std::int32_t categories = 0;  // without background
    std::vector<LabelledBox> boxes;
};

}  // namespace hpcai::evaluation
