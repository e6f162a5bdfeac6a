// SPDX-License-Identifier: Apache-2.0
#include "compare_quality.hpp"

#include <algorithm>

#include <fmt/core.h>

#include <hpcai/evaluation/average_precision.hpp>
#include <hpcai/evaluation/coco_json.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/storage/npy.hpp>
#include <hpcai/verification/judge.hpp>
#include <hpcai/verification/statistics.hpp>

namespace hpcai::verification {
namespace {

using evaluation::Detection;
using evaluation::DetectionTruth;

constexpr int kDetectorDraws = 1000;

std::filesystem::path evaluation_file(const StoredResult& result, const std::string& name) {
    return result.directory / "evaluation" / name;
}

struct Verdict {
    Judgement judgement;
    std::string why;
};

Verdict mcnemar(const StoredResult& first, const StoredResult& second) {
    const PredictionFiles files = prediction_files(first.config.workload);
    const auto labels = storage::read_npy(evaluation_file(first, files.labels));
    const auto said_1 = storage::read_npy(evaluation_file(first, files.ensemble));
    const auto said_2 = storage::read_npy(evaluation_file(second, files.ensemble));
    const auto classes = static_cast<std::size_t>(first.config.workload.classes);
    require(labels.dtype() == tensor::DType::s32, ExitCode::data, "{}: has {}; must have {}",
            files.labels, tensor::name_of(labels.dtype()), tensor::name_of(tensor::DType::s32));
    const auto truth = labels.as<std::int32_t>();
    for (const auto* said : {&said_1, &said_2}) {
        require(said->dtype() == tensor::DType::f32, ExitCode::data, "{}: has {}; must have {}",
                files.ensemble, tensor::name_of(said->dtype()),
                tensor::name_of(tensor::DType::f32));
        require(said->as<float>().size() == truth.size() * classes, ExitCode::data,
                "{} probabilities for {} labels of {} classes", said->as<float>().size(),
                truth.size(), classes);
    }
    std::int64_t only_first = 0, only_second = 0;
    for (std::size_t sample = 0; sample < truth.size(); ++sample) {
        if (truth[sample] == evaluation::kPaddingLabel) continue;
        const auto is_right = [&](const storage::NpyArray& said) {
            return evaluation::predicted_class(
                       said.as<float>().subspan(sample * classes, classes)) == truth[sample];
        };
        const bool right_1 = is_right(said_1), right_2 = is_right(said_2);
        only_first += right_1 && !right_2;
        only_second += right_2 && !right_1;
    }
    const double p = mcnemar_p(only_first, only_second);
    const std::string why =
        fmt::format("McNemar: {} samples only the first has right, {} only the second, p = {:.3g}",
                    only_first, only_second, p);
    if (only_first + only_second == 0) return {Judgement::same, why};
    if (p >= 0.05) return {Judgement::unclear, why};
    return {only_second > only_first ? Judgement::better : Judgement::worse, why};
}

/// The test set, and what was found in it, with each image as often as it was drawn.
template <typename Item>
std::vector<Item> drawn(std::span<const Item> items, std::span<const std::uint32_t> times,
                        std::span<const std::int64_t> first_place) {
    std::vector<Item> result;
    for (Item item : items) {
        const auto image = static_cast<std::size_t>(item.image);
        for (std::uint32_t copy = 0; copy < times[image]; ++copy) {
            item.image = first_place[image] + copy;
            result.push_back(item);
        }
    }
    return result;
}

Verdict bootstrap(const StoredResult& first, const StoredResult& second) {
    const PredictionFiles files = prediction_files(first.config.workload);
    const auto annotations =
        evaluation::read_coco_annotations(evaluation_file(first, files.labels));
    const auto said_1 =
        evaluation::read_coco_detections(evaluation_file(first, files.ensemble), annotations);
    const auto said_2 =
        evaluation::read_coco_detections(evaluation_file(second, files.ensemble), annotations);
    const std::int64_t images = annotations.truth.images;
    if (said_1 == said_2) return {Judgement::same, "both have the same detections"};
    const auto interval = paired_interval_95(
        images, kDetectorDraws, [&](std::span<const std::uint32_t> times) -> std::optional<double> {
            std::vector<std::int64_t> places;
            std::int64_t next = 0;
            for (const std::uint32_t count : times) {
                places.push_back(next);
                next += count;
            }
            DetectionTruth truth = annotations.truth;
            truth.boxes = drawn(std::span<const evaluation::LabelledBox>(annotations.truth.boxes),
                                times, places);
            const auto quality = [&](std::span<const Detection> said) {
                return evaluation::detection_quality(truth, drawn(said, times, places),
                                                     evaluation::kScoreThreshold)
                    .mean;
            };
            const auto mean_1 = quality(said_1);
            if (!mean_1) return std::nullopt;
            return quality(said_2)->coco - mean_1->coco;
        });
    if (!interval) return {Judgement::unclear, "no test sample has a box"};
    const std::string why =
        fmt::format("difference {:+.4f} to {:+.4f} (95 %, paired bootstrap over {} test samples)",
                    interval->low, interval->high, images);
    if (interval->low > 0) return {Judgement::better, why};
    return {interval->high < 0 ? Judgement::worse : Judgement::unclear, why};
}

/// Cells of a sample depend on one another, so that samples are drawn.
Verdict cell_bootstrap(const StoredResult& first, const StoredResult& second) {
    const PredictionFiles files = prediction_files(first.config.workload);
    const auto labels = storage::read_npy(evaluation_file(first, files.labels));
    const auto said_1 = storage::read_npy(evaluation_file(first, files.ensemble));
    const auto said_2 = storage::read_npy(evaluation_file(second, files.ensemble));
    const models::CellGrid grid = models::cell_grid(first.config);
    const std::int64_t cells = grid.rows * grid.columns;
    const std::int64_t rows = labels.shape().rank() == 1 ? labels.shape()[0] : 0;
    require(labels.dtype() == tensor::DType::s32 && said_1.dtype() == tensor::DType::f32 &&
                said_2.dtype() == tensor::DType::f32 && rows > 0 && rows % cells == 0 &&
                said_1.shape() == said_2.shape() && said_1.shape().rank() == 2 &&
                said_1.shape()[0] == rows,
            ExitCode::data,
            "labels {} of {} and probabilities {} of {} and {} of {}; must be int32 of some times "
            "{} cells and fp32 with as many rows",
            to_string(labels.shape()), tensor::name_of(labels.dtype()), to_string(said_1.shape()),
            tensor::name_of(said_1.dtype()), to_string(said_2.shape()),
            tensor::name_of(said_2.dtype()), cells);
    const auto of = [&](const storage::NpyArray& said) {
        return Probabilities{said.as<float>(), labels.as<std::int32_t>(), said.shape()[1]};
    };
    const Probabilities one = of(said_1), other = of(said_2);
    if (std::ranges::equal(one.values, other.values)) {
        return {Judgement::same, "both say the same"};
    }
    const auto interval = cell_interval_95(one, cells, &other);
    if (!interval) return {Judgement::unclear, "no cell was scored"};
    const std::string why =
        fmt::format("difference {:+.4f} to {:+.4f} (95 %, paired bootstrap over {} test samples)",
                    interval->low, interval->high, labels.shape()[0] / cells);
    if (interval->low > 0) return {Judgement::better, why};
    return {interval->high < 0 ? Judgement::worse : Judgement::unclear, why};
}

Verdict by_intervals(const IntervalRecord& first, const IntervalRecord& second) {
    const std::string other_samples = "other test samples: by the 95 % intervals, which ";
    if (!first.low.value || !first.high.value || !second.low.value || !second.high.value) {
        return {Judgement::unclear, "one has no interval"};
    }
    if (*second.low.value > *first.high.value) {
        return {Judgement::better, other_samples + "lie apart"};
    }
    if (*second.high.value < *first.low.value) {
        return {Judgement::worse, other_samples + "lie apart"};
    }
    return {Judgement::unclear, other_samples + "overlap"};
}

Verdict judge(const StoredResult& first, const StoredResult& second) {
    const QualityRecord& one = first.record.quality;
    const QualityRecord& other = second.record.quality;
    if (!one.ensemble.value || !other.ensemble.value) {
        return {Judgement::unclear, "one has no quality"};
    }
    if (one.metric.index() != other.metric.index())
        return {Judgement::unclear, "the metrics are not the same"};
    if (one.labels_sha256.empty() || one.labels_sha256 != other.labels_sha256) {
        return by_intervals(one.confidence_interval, other.confidence_interval);
    }
    switch (task_of(first.config.workload)) {
        case config::Task::classification:
            return mcnemar(first, second);
        case config::Task::detection:
            return bootstrap(first, second);
        case config::Task::segmentation:
            return cell_bootstrap(first, second);
    }
    return {Judgement::unclear, "an unknown task"};
}

}  // namespace

MetricComparison compare_quality(const StoredResult& first, const StoredResult& second) {
    const auto [judgement, why] = judge(first, second);
    return {"quality.ensemble",
            metric_name(first.record.quality.metric),
            first.record.quality.ensemble,
            second.record.quality.ensemble,
            judgement,
            why};
}

}  // namespace hpcai::verification
