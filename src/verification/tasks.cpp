// SPDX-License-Identifier: Apache-2.0
#include <hpcai/base/error.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/verification/derive.hpp>
#include <hpcai/verification/judge.hpp>

namespace hpcai::verification {
namespace {

const PredictionFiles kDetections{"detections.json", "ensemble.json", "annotations.json"};
const PredictionFiles kArrays{"predictions.npy", "ensemble.npy", "labels.npy"};

}  // namespace

PredictionFiles prediction_files(const config::WorkloadConfig& workload) {
    return detects(workload) ? kDetections : kArrays;
}

std::string metric_of(const config::WorkloadConfig& workload) {
    switch (task_of(workload)) {
        case config::Task::classification:
            return "top_1_accuracy";
        case config::Task::detection:
            return "coco_ap50";
        case config::Task::segmentation:
            return "mean_iou";
    }
    return "";
}

QualityRecord no_quality(const std::string& reason) {
    QualityRecord quality;
    for (Quantity* one :
         {&quality.ensemble, &quality.ensemble_top_5, &quality.ensemble_majority,
          &quality.members_mean, &quality.ensemble_gain, &quality.out_of_bag,
          &quality.confidence_interval.low, &quality.confidence_interval.high,
          &quality.members_interval.low, &quality.members_interval.high, &quality.ensemble_voc_ap50,
          &quality.ensemble_ap10, &quality.ensemble_pixel_accuracy}) {
        *one = nothing(reason);
    }
    return quality;
}

tensor::Shape ProbabilityTask::label_shape(std::int64_t samples) const {
    return {samples * rows_per_sample()};
}

tensor::Shape ProbabilityTask::shape(std::int64_t samples) const {
    return {samples * rows_per_sample(), classes};
}

ProbabilityTask probability_task(const config::Config& config,
                                 std::vector<std::string> class_names) {
    ensure(!detects(config.workload), "a detector has no rows of probabilities");
    if (task_of(config.workload) == config::Task::classification) {
        return {0, config.workload.classes, {}, judge_member, judge_vote};
    }
    const models::CellGrid grid = models::cell_grid(config);
    ProbabilityTask task;
    task.cells = grid.rows * grid.columns;
    task.classes = config.workload.classes + 1;
    task.class_names = std::move(class_names);
    task.judge_member = judge_cells;
    task.judge_vote = [cells = task.cells, names = task.class_names](const VotedProbabilities& said,
                                                                     QualityRecord& quality) {
        judge_cell_vote(said, cells, names, quality);
    };
    return task;
}

}  // namespace hpcai::verification
