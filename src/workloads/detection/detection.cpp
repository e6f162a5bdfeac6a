// SPDX-License-Identifier: Apache-2.0
#include <hpcai/evaluation/average_precision.hpp>
#include <hpcai/evaluation/coco_json.hpp>
#include <hpcai/evaluation/detection_ensemble.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/workloads/tasks.hpp>

#include "judge_detections.hpp"

namespace hpcai::workloads {
namespace {

// The network outputs x1, y1, x2, y2, score, category for each detection.
constexpr std::int64_t kNumbersPerDetection = 6;
constexpr std::int64_t kRowsPerSample = evaluation::kDetectionsPerImage;

class DetectionEvaluator final : public Evaluator {
public:
    DetectionEvaluator(const config::Config& config, const data::SampleSets& samples)
        : config_(config), samples_(samples) {}

    std::int64_t outputs_per_sample() const override {
        return kRowsPerSample * kNumbersPerDetection;
    }

    void score(const MemberPredictions& member, GroupResult& result) const override {
        score_detections(annotations_of(member.validation.labels).truth, detections_of(member),
                         result);
    }

    void store(const training::Predictions& predictions,
               const std::filesystem::path& directory) const override {
        storage::write_file_durably(
            directory / kDetectionFiles.member,
            coco_detections(annotations_of(predictions.labels), detections_of(predictions)));
    }

    void load(const std::filesystem::path& directory, MemberPredictions& member) const override {
        member.detections = evaluation::read_coco_detections(
            directory / kDetectionFiles.member, annotations_of(member.validation.labels));
    }

    EnsemblePredictions combine(const MemberPredictions& predictions, comm::Communicator& leaders,
                                QualityRecord& quality) const override {
        const std::vector<evaluation::Detection> detections = detections_of(predictions);
        const evaluation::Member member{detections, 1};
        EnsemblePredictions ensemble;
        ensemble.labels = predictions.validation.labels;
        ensemble.detections = evaluation::fuse_detections(
            leaders, std::span(&member, 1), samples().samples(), fusion_options(config_));
        const evaluation::Annotations truth = annotations_of(ensemble.labels);
        if (leaders.rank() == 0) score_fusion(truth, ensemble.detections, quality);
        quality.members_interval = detectors_interval(
            leaders, config_, truth.truth, {std::span(&member, 1), leaders.rank(), leaders.size()});
        return ensemble;
    }

    void store(const EnsemblePredictions& ensemble,
               const std::filesystem::path& directory) const override {
        const evaluation::Annotations annotations = annotations_of(ensemble.labels);
        storage::write_file_durably(directory / kDetectionFiles.ensemble,
                                    coco_detections(annotations, ensemble.detections));
        storage::write_file_durably(directory / kDetectionFiles.labels,
                                    coco_annotations(annotations));
    }

private:
    const data::SampleSet& samples() const { return *samples_.validation; }

    /// Returns the annotations of the test samples, without the boxes of samples that are not
    /// scored (label -1). Other labels have no meaning here.
    evaluation::Annotations annotations_of(std::span<const std::int32_t> labels) const {
        const data::SampleFormat& format = samples().format();
        evaluation::Annotations annotations;
        annotations.truth = {samples().samples(), samples().classes(), {}};
        ensure(static_cast<std::int64_t>(labels.size()) == annotations.truth.images,
               "{} labels for {} images", labels.size(), annotations.truth.images);
        for (int category = 1; category <= samples().classes(); ++category) {
            annotations.categories.push_back({category, samples().class_name(category)});
        }
        for (std::int64_t image = 0; image < annotations.truth.images; ++image) {
            const auto sample = static_cast<std::uint32_t>(image);
            annotations.images.push_back(
                {image, samples().name(sample), format.width, format.height});
            if (labels[sample] < 0) continue;
            for (const data::Box& box : samples().boxes(sample)) {
                annotations.truth.boxes.push_back(
                    {image, box.category,
                     evaluation::box_from_corners(box.x1, box.y1, box.x2, box.y2)});
            }
        }
        return annotations;
    }

    static std::vector<evaluation::Detection> detections_of(const MemberPredictions& member) {
        return member.detections ? *member.detections : detections_of(member.validation);
    }

    /// Returns the detections in scored samples.
    static std::vector<evaluation::Detection> detections_of(
        const training::Predictions& predictions) {
        std::vector<evaluation::Detection> detections;
        for (std::size_t image = 0; image < predictions.labels.size(); ++image) {
            if (predictions.labels[image] < 0) continue;
            for (std::int64_t row = 0; row < kRowsPerSample; ++row) {
                const auto offset = static_cast<std::size_t>(
                    (static_cast<std::int64_t>(image) * kRowsPerSample + row) *
                    kNumbersPerDetection);
                const auto numbers =
                    std::span(predictions.outputs)
                        .subspan(offset, static_cast<std::size_t>(kNumbersPerDetection));
                const auto category = static_cast<std::int32_t>(numbers[5]);
                if (category == 0) break;  // unused rows follow
                detections.push_back(
                    {static_cast<std::int64_t>(image), category, numbers[4],
                     evaluation::box_from_corners(numbers[0], numbers[1], numbers[2], numbers[3])});
            }
        }
        return detections;
    }

    const config::Config& config_;
    const data::SampleSets& samples_;
};

}  // namespace

Workload detection() {
    return {config::Task::detection,           AveragePrecisionRecord{}, kDetectionFiles,
            new_evaluator<DetectionEvaluator>, make_detection_check,     compare_detections};
}

}  // namespace hpcai::workloads
