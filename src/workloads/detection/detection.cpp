// SPDX-License-Identifier: Apache-2.0
#include <hpcai/comm/communicator.hpp>
#include <hpcai/evaluation/coco_json.hpp>
#include <hpcai/evaluation/detection_ensemble.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/workloads/tasks.hpp>

#include "score_detections.hpp"

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

using evaluation::Detection;

class DetectionCheck final : public PredictionCheck {
public:
    explicit DetectionCheck(const CheckedResult& result)
        : config_(result.config), samples_(result.samples), inspector_(result.inspector) {
        const auto text = inspector_.read_text(labels_name());
        if (!text) return;
        labels_digest_ = storage::sha256_hex(storage::bytes_of(*text));
        annotations_ = inspector_.attempt(labels_name(), [&] { return read_annotations(*text); });
        if (annotations_)
            inspector_.compare_lines(labels_name(), *text, coco_annotations(*annotations_));
    }

    void add_member(int group, GroupResult& result) override {
        const std::string name = group_prefix(group) + kDetectionFiles.member;
        const auto detections = read(name, result.record.predictions_sha256);
        if (!detections) {
            is_complete_ = false;
            return;
        }
        score_detections(annotations_->truth, *detections, result);
        members_.push_back(*detections);
    }

    void finish(QualityRecord& quality) override {
        const std::string name = "evaluation/" + kDetectionFiles.ensemble;
        quality.labels_sha256 = labels_digest_;
        const auto stored = read(name, quality.ensemble_sha256);
        if (!stored || !is_complete_ || members_.empty()) return;
        const std::vector<evaluation::Member> members(members_.begin(), members_.end());
        const auto communicator = comm::make_self_communicator();
        const evaluation::DetectionTruth& truth = annotations_->truth;
        const std::vector<Detection> fused = evaluation::fuse_detections(
            *communicator, members, truth.images, fusion_options(config_));
        for (std::size_t index = 0; index < std::max(fused.size(), stored->size()); ++index) {
            if (index < fused.size() && index < stored->size() && fused[index] == (*stored)[index])
                continue;
            inspector_.report(
                name, "detection {} of {} differs from the {} fused detections of {}{}", index,
                stored->size(), fused.size(), "groups/*/", kDetectionFiles.member);
            break;
        }
        score_fusion(*annotations_, fused, quality);
        quality.members_interval = detectors_interval(
            *communicator, config_, truth, {members, 0, static_cast<int>(members.size())});
    }

private:
    std::string labels_name() const { return "evaluation/" + kDetectionFiles.labels; }

    evaluation::Annotations read_annotations(const std::string& text) const {
        const auto annotations = evaluation::parse_coco_annotations(text, labels_name());
        require(std::ssize(annotations.images) == samples_, ExitCode::data,
                "number of images is {}; must be {}", annotations.images.size(), samples_);
        const int classes = config_.workload.classes;
        require(annotations.truth.categories == classes, ExitCode::data,
                "number of categories is {}; must be {}", annotations.truth.categories, classes);
        return annotations;
    }

    std::optional<std::vector<Detection>> read(const std::string& name, std::string& digest) {
        const auto text = inspector_.read_text(name);
        if (!text) return std::nullopt;
        digest = storage::sha256_hex(storage::bytes_of(*text));
        if (!annotations_) return std::nullopt;
        const auto detections = inspector_.attempt(
            name, [&] { return evaluation::parse_coco_detections(*text, name, *annotations_); });
        if (detections)
            inspector_.compare_lines(name, *text, coco_detections(*annotations_, *detections));
        return detections;
    }

    const config::Config& config_;
    const std::int64_t samples_;
    Inspector& inspector_;
    std::optional<evaluation::Annotations> annotations_;
    std::string labels_digest_;
    std::vector<std::vector<Detection>> members_;  // each by ascending image
    bool is_complete_ = true;
};

}  // namespace

Workload detection() {
    return {config::Task::detection,           AveragePrecisionRecord{},  kDetectionFiles,
            new_evaluator<DetectionEvaluator>, new_check<DetectionCheck>, compare_detections};
}

}  // namespace hpcai::workloads
