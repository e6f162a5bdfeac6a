// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <hpcai/records/record_fields.hpp>

/// The numbers of an ensemble's quality that only one metric has. Each struct's `name` is the value
/// of `quality.metric` in `result.json`, and its keys follow there.
namespace hpcai {

/// Top-1 accuracy of a classification.
struct TopAccuracyRecord {
    static constexpr std::string_view name = "top_1_accuracy";
    Quantity ensemble_top_5;
    Quantity ensemble_majority;           // Top-1 by majority vote
    Quantity out_of_bag;                  // Top-1 on training samples, by the out-of-bag vote
    std::int64_t out_of_bag_samples = 0;  // covered by at least one member
    HPCAI_RECORD(TopAccuracyRecord, ensemble_top_5, ensemble_majority, out_of_bag,
                 out_of_bag_samples);
};

/// One kind of object that detectors look for, in the ensemble's detections.
struct CategoryRecord {
    std::string name;
    std::int64_t boxes = 0;       // in the test samples
    std::int64_t detections = 0;  // that were counted
    std::int64_t hits = 0;        // of these, at an intersection over union of 0.5
    Quantity ap50;                // average precision at 0.5, COCO's 101 points
    Quantity voc_ap50;            // at 0.5, area under Pascal VOC's curve
    Quantity ap10;                // at 0.1, COCO's 101 points
    HPCAI_RECORD(CategoryRecord, name, boxes, detections, hits, ap50, voc_ap50, ap10);
};

/// Average precision of a detection, mean over the categories.
struct AveragePrecisionRecord {
    static constexpr std::string_view name = "coco_ap50";
    Quantity ensemble_voc_ap50;
    Quantity ensemble_ap10;
    std::vector<CategoryRecord> categories;
    HPCAI_RECORD(AveragePrecisionRecord, ensemble_voc_ap50, ensemble_ap10, categories);
};

/// One class of a segmentation, in the ensemble's predictions for the cells of the test samples.
struct SegmentRecord {
    std::string name;
    std::int64_t cells = 0;      // of the class
    std::int64_t predicted = 0;  // to be of it
    std::int64_t hits = 0;       // of these, rightly
    Quantity iou;                // intersection over union
    HPCAI_RECORD(SegmentRecord, name, cells, predicted, hits, iou);
};

/// Intersection over union of a segmentation, mean over the classes.
struct MeanIouRecord {
    static constexpr std::string_view name = "mean_iou";
    Quantity ensemble_majority;           // mean intersection over union by majority vote
    Quantity ensemble_pixel_accuracy;     // share of cells that are right
    std::vector<SegmentRecord> segments;  // the background first
    HPCAI_RECORD(MeanIouRecord, ensemble_majority, ensemble_pixel_accuracy, segments);
};

using MetricRecord = std::variant<TopAccuracyRecord, AveragePrecisionRecord, MeanIouRecord>;

/// Returns "top_1_accuracy", "coco_ap50" or "mean_iou".
inline std::string metric_name(const MetricRecord& metric) {
    return std::visit([](const auto& numbers) { return std::string(numbers.name); }, metric);
}

}  // namespace hpcai
