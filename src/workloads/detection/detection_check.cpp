// SPDX-License-Identifier: Apache-2.0
#include <hpcai/comm/communicator.hpp>
#include <hpcai/evaluation/detection_ensemble.hpp>
#include <hpcai/storage/sha256.hpp>

#include "judge_detections.hpp"

namespace hpcai::workloads {
namespace {

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
                "has {} images; must have {}, one per sample", annotations.images.size(), samples_);
        const int classes = config_.workload.classes;
        require(annotations.truth.categories == classes, ExitCode::data,
                "has {} categories; must have {}", annotations.truth.categories, classes);
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

std::unique_ptr<PredictionCheck> make_detection_check(const CheckedResult& result) {
    return std::make_unique<DetectionCheck>(result);
}

}  // namespace hpcai::workloads
