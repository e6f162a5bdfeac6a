// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <hpcai/evaluation/detection.hpp>
#include <hpcai/evaluation/top_k.hpp>

/// Average precision of detections. Matching is that of pycocotools (cocodataset/cocoapi,
/// PythonAPI/pycocotools/cocoeval.py) whatever the boxes' areas: of an image and a category the 100
/// detections of highest score, equal scores in the order they come in, take one by one the free
/// box with which they have the highest intersection over union, of equals the last, if that is at
/// least min(threshold, 1 - 1e-10). A detection that takes a crowd's box counts neither as right
/// nor as wrong. All images' detections are then ranked by score, equal ones by image.
namespace hpcai::evaluation {

inline constexpr double kScoreThreshold = 0.5;     // AP50, the quality of the benchmark
inline constexpr double kTolerantThreshold = 0.1;  // as in Racah et al., NeurIPS 2017

/// The three usual means of precision over recall. Each has the precision at a recall raised to
/// the highest at any greater recall.
struct AveragePrecision {
    double coco = 0;      // at the recalls 0, 0.01 ... 1, as pycocotools rounds them
    double voc_area = 0;  // area under the curve, Pascal VOC from 2010
    double voc_2007 = 0;  // at the recalls 0, 0.1 ... 1
};

/// Returns the means of `hits` (detections), best first, 1 where right, with `positives` boxes to
/// find. Throws Error(internal) unless there is one at least.
AveragePrecision average_precision(std::span<const std::uint8_t> hits, std::int64_t positives);

struct CategoryQuality {
    std::int64_t boxes = 0;                     // to find, crowds not counted
    std::int64_t detections = 0;                // right or wrong
    std::int64_t hits = 0;                      // right
    std::optional<AveragePrecision> precision;  // nothing without boxes
};

struct DetectionQuality {
    std::vector<CategoryQuality> categories;  // [label - 1]
    std::optional<AveragePrecision> mean;     // over the categories that have boxes
};

/// Throws Error(internal) for an image or a category that `truth` does not have.
DetectionQuality detection_quality(const DetectionTruth& truth,
                                   std::span<const Detection> detections, double threshold);

/// Percentile bootstrap over test images (B. Efron, R. Tibshirani, An Introduction to the
/// Bootstrap, 1993, section 13.3): the 2.5 % and 97.5 % quantiles of the mean COCO precision over
/// 1000 draws of as many images with replacement, without the draws that have no box. The draws
/// are the same each time, so that anyone finds a run's interval again. It covers the finite test
/// set only. Nothing where no draw has a box. Throws as detection_quality does.
std::optional<Interval> bootstrap_interval_95(const DetectionTruth& truth,
                                              std::span<const Detection> detections,
                                              double threshold);

}  // namespace hpcai::evaluation
