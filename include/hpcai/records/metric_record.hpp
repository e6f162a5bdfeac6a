// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <hpcai/records/record_fields.hpp>

/// The quality numbers of an ensemble that are specific to one metric. `name` is the value of
/// `quality.metric` in `result.json`; the keys of the struct follow it there.
namespace hpcai {

/// Top-1 accuracy of a classification.
struct TopAccuracyRecord {
    static constexpr std::string_view name = "top_1_accuracy";
    Quantity ensemble_top_5;
    Quantity ensemble_majority;           // Top-1 by majority vote
    Quantity out_of_bag;                  // Top-1 of the out-of-bag vote on training samples
    std::int64_t out_of_bag_samples = 0;  // samples with a vote of at least one member
    HPCAI_RECORD(TopAccuracyRecord, ensemble_top_5, ensemble_majority, out_of_bag,
                 out_of_bag_samples);
};

/// Test samples of class `label` that the ensemble assigns to class `predicted`. Not stored.
struct ConfusionRecord {
    std::string label;
    std::string predicted;
    std::int64_t samples = 0;
};

/// The detections of the ensemble in one category of objects.
struct CategoryRecord {
    std::string name;
    std::int64_t boxes = 0;       // in the test samples
    std::int64_t detections = 0;  // correct and incorrect, at most 100 per image
    std::int64_t hits = 0;        // correct detections: intersection over union (IoU) at least 0.5
    Quantity ap50;                // average precision at IoU 0.5: mean over COCO's 101 recalls
    Quantity voc_ap50;            // as ap50, but the area under Pascal VOC's precision-recall curve
    Quantity ap10;                // as ap50, at IoU 0.1
    HPCAI_RECORD(CategoryRecord, name, boxes, detections, hits, ap50, voc_ap50, ap10);
};

/// Mean average precision over the categories of a detection data set.
struct AveragePrecisionRecord {
    static constexpr std::string_view name = "coco_ap50";
    Quantity ensemble_voc_ap50;
    Quantity ensemble_ap10;
    std::vector<CategoryRecord> categories;
    HPCAI_RECORD(AveragePrecisionRecord, ensemble_voc_ap50, ensemble_ap10, categories);
};

/// The predictions of the ensemble for one class in segmentation.
struct SegmentRecord {
    std::string name;
    std::int64_t cells = 0;      // cells (8 x 8 pixels) of this class in the test samples
    std::int64_t predicted = 0;  // cells predicted as this class
    std::int64_t hits = 0;       // correctly predicted cells
    Quantity iou;                // intersection over union
    HPCAI_RECORD(SegmentRecord, name, cells, predicted, hits, iou);
};

/// Mean intersection over union over the classes in segmentation.
struct MeanIouRecord {
    static constexpr std::string_view name = "mean_iou";
    Quantity ensemble_majority;           // mean intersection over union by majority vote
    Quantity ensemble_pixel_accuracy;     // share of correct cells
    std::vector<SegmentRecord> segments;  // one per class, the background first
    HPCAI_RECORD(MeanIouRecord, ensemble_majority, ensemble_pixel_accuracy, segments);
};

using MetricRecord = std::variant<TopAccuracyRecord, AveragePrecisionRecord, MeanIouRecord>;

/// Returns "top_1_accuracy", "coco_ap50" or "mean_iou".
inline std::string metric_name(const MetricRecord& metric) {
    return std::visit([](const auto& numbers) { return std::string(numbers.name); }, metric);
}

}  // namespace hpcai
