// SPDX-License-Identifier: Apache-2.0
#include <hpcai/base/error.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/verification/derive.hpp>
#include <hpcai/verification/judge.hpp>

namespace hpcai::verification {
namespace {

const PredictionFiles kDetections{"detections.json", "ensemble.json", "annotations.json"};
const PredictionFiles kArrays{"predictions.npy", "ensemble.npy", "labels.npy"};

/// Gives each number of a record the same reason why it is missing.
struct SetReason {
    Quantity missing;

    void operator()(const std::string&, Quantity& quantity) const { quantity = missing; }

    void operator()(const std::string&, MetricRecord& metric) const {
        std::visit([&](auto& numbers) { for_each_field(numbers, *this); }, metric);
    }

    template <typename T>
    void operator()(const std::string&, T& member) const {
        if constexpr (requires { member.record_values(); }) for_each_field(member, *this);
    }
};

}  // namespace

PredictionFiles prediction_files(const config::WorkloadConfig& workload) {
    return detects(workload) ? kDetections : kArrays;
}

MetricRecord metric_of(const config::WorkloadConfig& workload) {
    switch (task_of(workload)) {
        case config::Task::classification:
            return TopAccuracyRecord{};
        case config::Task::detection:
            return AveragePrecisionRecord{};
        case config::Task::segmentation:
            return MeanIouRecord{};
    }
    return {};
}

QualityRecord no_quality(MetricRecord metric, const std::string& reason) {
    QualityRecord quality;
    quality.metric = std::move(metric);
    for_each_field(quality, SetReason{nothing(reason)});
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
