// SPDX-License-Identifier: Apache-2.0
#include <hpcai/evaluation/box_fusion.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/verification/judge.hpp>

#include "checks.hpp"

namespace hpcai::verification {
namespace {

using evaluation::Detection;
using evaluation::MemberDetection;

class DetectionCheck final : public PredictionCheck {
public:
    DetectionCheck(const Claim& claim, Inspector& inspector)
        : claim_(claim), inspector_(inspector), names_(prediction_files(claim.config.workload)) {
        const auto text = inspector.text_of(labels_name());
        if (!text) return;
        labels_digest_ = storage::sha256_hex(storage::bytes_of(*text));
        annotations_ = inspector.attempt(labels_name(), [&] { return read_annotations(*text); });
        if (annotations_) {
            pooled_.resize(annotations_->images.size());
            inspector.compare_lines(labels_name(), *text, coco_annotations(*annotations_));
        }
    }

    void add_member(int group, GroupResult& result) override {
        const std::string name = group_prefix(group) + names_.member;
        const auto said = read(name, result.record.predictions_sha256);
        if (!said) {
            is_complete_ = false;
            return;
        }
        judge_detections(annotations_->truth, *said, result);
        for (const Detection& one : *said) {
            pooled_[static_cast<std::size_t>(one.image)].push_back({members_, one});
        }
        ++members_;
    }

    void finish(QualityRecord& quality) override {
        const std::string name = "evaluation/" + names_.ensemble;
        quality.labels_sha256 = labels_digest_;
        const auto stored = read(name, quality.ensemble_sha256);
        if (!stored || !is_complete_ || members_ == 0) return;
        const std::vector<Detection> fused = fuse();
        for (std::size_t index = 0; index < std::max(fused.size(), stored->size()); ++index) {
            if (index < fused.size() && index < stored->size() && fused[index] == (*stored)[index])
                continue;
            inspector_.find(name, "detection {} of {} is not that of {} which {}{} fuse to", index,
                            stored->size(), fused.size(), "groups/*/", names_.member);
            break;
        }
        judge_fusion(*annotations_, fused, quality);
    }

private:
    std::string labels_name() const { return "evaluation/" + names_.labels; }

    evaluation::Annotations read_annotations(const std::string& text) const {
        const auto annotations = evaluation::parse_coco_annotations(text, labels_name());
        const auto samples = static_cast<std::size_t>(claim_.record.workload.validation_samples);
        require(annotations.images.size() == samples, ExitCode::data,
                "has {} images; must have {}, one a sample", annotations.images.size(), samples);
        const int classes = claim_.config.workload.classes;
        require(annotations.truth.categories == classes, ExitCode::data,
                "has {} categories; must have {}", annotations.truth.categories, classes);
        return annotations;
    }

    std::optional<std::vector<Detection>> read(const std::string& name, std::string& digest) {
        const auto text = inspector_.text_of(name);
        if (!text) return std::nullopt;
        digest = storage::sha256_hex(storage::bytes_of(*text));
        if (!annotations_) return std::nullopt;
        const auto said = inspector_.attempt(
            name, [&] { return evaluation::parse_coco_detections(*text, name, *annotations_); });
        if (said) inspector_.compare_lines(name, *text, coco_detections(*annotations_, *said));
        return said;
    }

    std::vector<Detection> fuse() const {
        const std::vector<double> weights(static_cast<std::size_t>(members_), 1.0);
        const evaluation::FusionOptions options = fusion_of(claim_.config);
        std::vector<Detection> fused;
        for (const std::vector<MemberDetection>& image : pooled_) {
            const std::vector<Detection> some = evaluation::fuse_image(image, weights, options);
            fused.insert(fused.end(), some.begin(), some.end());
        }
        return fused;
    }

    const Claim claim_;
    Inspector& inspector_;
    PredictionFiles names_;
    std::optional<evaluation::Annotations> annotations_;
    std::string labels_digest_;
    std::vector<std::vector<MemberDetection>> pooled_;  // [image], by member
    int members_ = 0;
    bool is_complete_ = true;
};

}  // namespace

std::unique_ptr<PredictionCheck> make_detection_check(const Claim& claim, Inspector& inspector) {
    return std::make_unique<DetectionCheck>(claim, inspector);
}

}  // namespace hpcai::verification
