// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace hpcai::evaluation {

/// The detections of highest score that count in an image.
inline constexpr std::int64_t kDetectionsPerImage = 100;

/// A rectangle in pixels as COCO has it: x to the right, y down, the far edges outside of it.
struct Box {
    double x = 0;
    double y = 0;
    double width = 0;
    double height = 0;
    bool operator==(const Box&) const = default;
};

/// The box from (x1, y1) to (x2, y2). x + width rounds to x2 in fp32 where both were fp32 and
/// not negative, and likewise y, so corners survive in files.
Box box_of_corners(double x1, double y1, double x2, double y2);

double area(const Box& box);

/// Area that both have, computed as pycocotools' bbIou does; 0 where they only touch.
double intersection_area(const Box& a, const Box& b);

/// Intersection over union, in [0, 1]; 0 for boxes that share no area.
double intersection_over_union(const Box& a, const Box& b);

/// What a detector found.
struct Detection {
    std::int64_t image = 0;     // in [0, images)
    std::int32_t category = 0;  // 1 to the number of categories; 0 is background
    double score = 0;
    Box box;
    bool operator==(const Detection&) const = default;
};

inline constexpr double kLargestNumber = 1e9;

/// Whether no number is beyond +-kLargestNumber or NaN and neither side is negative. What is not
/// sound names no place: it is left out of metrics, fusion and files.
bool is_sound(const Detection& detection);

/// What there is to find.
struct LabelledBox {
    std::int64_t image = 0;
    std::int32_t category = 0;
    Box box;
    bool crowd = false;  // COCO's iscrowd: may be found any number of times, and need not be
    bool operator==(const LabelledBox&) const = default;
};

/// The labels of a test set.
struct DetectionTruth {
    std::int64_t images = 0;
    std::int32_t categories = 0;  // without background
    std::vector<LabelledBox> boxes;
};

}  // namespace hpcai::evaluation
