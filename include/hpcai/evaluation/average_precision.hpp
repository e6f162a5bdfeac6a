// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/evaluation/detection.hpp>
#include <hpcai/evaluation/top_k.hpp>

/// Average precision of detections. Matching follows pycocotools (cocodataset/cocoapi,
/// PythonAPI/pycocotools/cocoeval.py), for boxes of any area. In each image and category, the 100
/// best detections are matched by descending score, ties in input order. A detection matches the
/// unmatched box with the highest intersection over union, in a tie the last such box, if this
/// overlap is at least min(threshold, 1 - 1e-10). It matches a crowd box only if no other box
/// qualifies, and is then ignored. The detections of a category are ranked by score, ties by image.
namespace hpcai::evaluation {

inline constexpr double kAp50Overlap = 0.5;  // minimum IoU of a hit in AP50
inline constexpr double kAp10Overlap = 0.1;  // for AP10, as in Racah et al., NeurIPS 2017

/// Three standard means of precision over recall. Before averaging, the precision at each recall is
/// raised to the highest precision at any greater recall.
struct AveragePrecision {
    double coco = 0;      // at the recalls 0, 0.01 ... 1, as pycocotools rounds them
    double voc_area = 0;  // area under the curve, Pascal VOC from 2010
    double voc_2007 = 0;  // at the recalls 0, 0.1 ... 1
};

/// Returns the means for `hits`, one entry per detection, best first: 1 for a true positive, else
/// 0. `positives` counts the labelled boxes except crowds. Throws Error(internal) if it is 0.
AveragePrecision average_precision(std::span<const std::uint8_t> hits, std::int64_t positives);

struct CategoryQuality {
    std::int64_t boxes = 0;                     // labelled boxes except crowds
    std::int64_t detections = 0;                // true and false positives
    std::int64_t hits = 0;                      // true positives
    std::optional<AveragePrecision> precision;  // absent without boxes
};

struct DetectionQuality {
    std::vector<CategoryQuality> categories;  // [category - 1]
    std::optional<AveragePrecision> mean;     // over the categories with labelled boxes
};

/// Throws Error(internal) for an image or category that `truth` does not have.
DetectionQuality detection_quality(const DetectionTruth& truth,
                                   std::span<const Detection> detections, double threshold);

/// Percentile bootstrap over test images (B. Efron, R. Tibshirani, An Introduction to the
/// Bootstrap, 1993, section 13.3). Draws truth.images images with replacement, 1000 times. Returns
/// the 2.5 % and 97.5 % quantiles of the draws' mean COCO precisions. Skips draws without a box;
/// returns nothing if no draw has one. The seed of the draws is fixed. The interval covers the
/// choice of test images, not training. Throws as detection_quality does.
std::optional<Interval> bootstrap_interval_95(const DetectionTruth& truth,
                                              std::span<const Detection> detections,
                                              double threshold);

/// 95 % interval of the mean COCO precision of `second` minus that of `first` at kAp50Overlap, by
/// image_interval_95(). Throws as detection_quality does.
std::optional<Interval> paired_precision_interval_95(const DetectionTruth& truth,
                                                     std::span<const Detection> first,
                                                     std::span<const Detection> second);

}  // namespace hpcai::evaluation
