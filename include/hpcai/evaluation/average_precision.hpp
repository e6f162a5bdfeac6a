// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <hpcai/evaluation/detection.hpp>
#include <hpcai/evaluation/top_k.hpp>

/// Average precision of detections. Matching is that of pycocotools (cocodataset/cocoapi,
/// PythonAPI/pycocotools/cocoeval.py), for boxes of any area. In each image and category, the 100
/// best detections are matched by descending score, ties in input order. A detection takes the free
/// box with the highest intersection over union, in a tie the last one, if this overlap is at least
/// min(threshold, 1 - 1e-10). It takes a crowd box only if no other box qualifies, and then does
/// not count. The detections of all images are then ranked by score, ties by image.
namespace hpcai::evaluation {

inline constexpr double kScoreThreshold = 0.5;     // overlap of AP50, the benchmark's quality
inline constexpr double kTolerantThreshold = 0.1;  // overlap as in Racah et al., NeurIPS 2017

/// The three usual means of precision over recall. Each first raises the precision at a recall to
/// the highest precision at any greater recall.
struct AveragePrecision {
    double coco = 0;      // at the recalls 0, 0.01 ... 1, as pycocotools rounds them
    double voc_area = 0;  // area under the curve, Pascal VOC from 2010
    double voc_2007 = 0;  // at the recalls 0, 0.1 ... 1
};

/// Returns the means for `hits` (detections), best first, 1: right. `positives` is the number of
/// boxes to find. Throws Error(internal) if it is 0.
AveragePrecision average_precision(std::span<const std::uint8_t> hits, std::int64_t positives);

struct CategoryQuality {
    std::int64_t boxes = 0;                     // boxes to find, without crowds
    std::int64_t detections = 0;                // counted as right or wrong
    std::int64_t hits = 0;                      // right
    std::optional<AveragePrecision> precision;  // absent without boxes
};

struct DetectionQuality {
    std::vector<CategoryQuality> categories;  // [label - 1]
    std::optional<AveragePrecision> mean;     // over the categories that have boxes
};

/// Computes the quality of detections. Throws Error(internal) for an image or category that `truth`
/// does not have.
DetectionQuality detection_quality(const DetectionTruth& truth,
                                   std::span<const Detection> detections, double threshold);

/// Percentile bootstrap over test images (B. Efron, R. Tibshirani, An Introduction to the
/// Bootstrap, 1993, section 13.3): the 2.5 % and 97.5 % quantiles of the mean COCO precision over
/// 1000 draws of as many images with replacement. Draws without a box are skipped. The draws are
/// always the same, so the interval of a run is reproducible. It covers only the finite test set.
/// Returns nothing if no draw has a box. Throws as detection_quality does.
std::optional<Interval> bootstrap_interval_95(const DetectionTruth& truth,
                                              std::span<const Detection> detections,
                                              double threshold);

}  // namespace hpcai::evaluation
