// SPDX-License-Identifier: Apache-2.0
#include <hpcai/comm/communicator.hpp>
#include <hpcai/evaluation/average_precision.hpp>
#include <hpcai/evaluation/coco_json.hpp>
#include <hpcai/evaluation/detection_ensemble.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/workloads/tasks.hpp>

namespace hpcai::workloads {
namespace {

// The network outputs x1, y1, x2, y2, score, category for each detection.
constexpr std::size_t kNumbersPerDetection = 6;
constexpr std::size_t kRowsPerSample = evaluation::kDetectionsPerImage;

using evaluation::Detection;
using evaluation::Judgement;

const PredictionFiles kDetectionFiles{"detections.json", "ensemble.json", "annotations.json"};

constexpr const char* kNoBox = "no test sample has a box";

Quantity mean_of(const evaluation::DetectionQuality& quality) {
    return quality.mean ? Quantity{quality.mean->coco, ""} : no_value(kNoBox);
}

CategoryRecord category_record(const evaluation::Category& category,
                               const evaluation::CategoryQuality& strict,
                               const evaluation::CategoryQuality& tolerant) {
    CategoryRecord record{.name = category.name,
                          .boxes = strict.boxes,
                          .detections = strict.detections,
                          .hits = strict.hits};
    record.ap50 = record.voc_ap50 = record.ap10 = no_value("no labelled box has this category");
    if (strict.precision) {
        record.ap50 = {strict.precision->coco, ""};
        record.voc_ap50 = {strict.precision->voc_area, ""};
        record.ap10 = {tolerant.precision->coco, ""};
    }
    return record;
}

void score_detections(const evaluation::DetectionTruth& truth,
                      std::span<const Detection> detections, GroupResult& result) {
    result.quality =
        mean_of(evaluation::detection_quality(truth, detections, evaluation::kAp50Overlap));
    result.quality_top_5 = no_value("detections have no Top-5");
}

/// Computes the quality of an ensemble's detections, its interval and each category's quality.
void score_fusion(const evaluation::Annotations& truth, std::span<const Detection> detections,
                  QualityRecord& quality) {
    const auto strict =
        evaluation::detection_quality(truth.truth, detections, evaluation::kAp50Overlap);
    const auto tolerant =
        evaluation::detection_quality(truth.truth, detections, evaluation::kAp10Overlap);
    quality.ensemble = mean_of(strict);
    AveragePrecisionRecord metric;
    metric.ensemble_voc_ap50 = strict.mean ? Quantity{strict.mean->voc_area, ""} : no_value(kNoBox);
    metric.ensemble_ap10 = mean_of(tolerant);
    for (std::size_t index = 0; index < strict.categories.size(); ++index) {
        metric.categories.push_back(category_record(
            truth.categories[index], strict.categories[index], tolerant.categories[index]));
    }
    quality.metric = std::move(metric);
    const auto interval =
        evaluation::bootstrap_interval_95(truth.truth, detections, evaluation::kAp50Overlap);
    quality.confidence_interval = interval_record(interval, kNoBox, "bootstrap over test samples");
}

/// Returns the fusion options of the configuration's `bagging` and `detector` sections.
evaluation::FusionOptions fusion_options(const config::Config& config) {
    const bool is_wbf = config.bagging.aggregation == config::Aggregation::wbf;
    const double fallback = is_wbf ? evaluation::kFusionOverlap : evaluation::kSuppressionOverlap;
    const double configured = config.detector.fusion_overlap;
    return {.method = is_wbf ? evaluation::FusionMethod::weighted_fusion
                             : evaluation::FusionMethod::suppression,
            .overlap = configured > 0 ? configured : fallback,
            .min_score = config.detector.score_threshold,
            .limit = evaluation::kDetectionsPerImage};
}

/// Returns quality.members_interval on rank 0. Each rank has equally many `members`. Collective.
IntervalRecord detectors_interval(comm::Communicator& ranks, const config::Config& config,
                                  const evaluation::DetectionTruth& truth,
                                  std::span<const evaluation::Member> members) {
    const auto count = static_cast<int>(members.size());
    const evaluation::MemberDraws draws =
        evaluation::draw_members(ranks.size() * count, config.run.seed);
    const std::string reason = evaluation::reason_to_skip_draws(draws, truth.images);
    if (!reason.empty()) return members_interval_record(reason, std::nullopt);
    const auto interval =
        evaluation::bootstrap_detections(ranks, {members, ranks.rank() * count, draws}, truth,
                                         evaluation::kAp50Overlap, fusion_options(config));
    return members_interval_record(interval ? "" : kNoBox, interval);
}

QualityComparison compare_detections(const ComparedResults& results) {
    const auto annotations =
        evaluation::read_coco_annotations(results.first / kDetectionFiles.labels);
    const auto read = [&](const std::filesystem::path& folder) {
        return evaluation::read_coco_detections(folder / kDetectionFiles.ensemble, annotations);
    };
    const auto first = read(results.first), second = read(results.second);
    if (first == second) return {Judgement::same, "both have the same detections"};
    const auto interval =
        evaluation::paired_precision_interval_95(annotations.truth, first, second);
    if (!interval) return {Judgement::unclear, kNoBox};
    return comparison(*interval, annotations.truth.images);
}

// A recomputed prediction may keep the other of two overlapping boxes with nearly equal scores.
// When bf16 predictions were recomputed in fp32, 88 % to 96 % of the detections had a match.
constexpr double kMatchedShare = 0.75;

/// Returns how many of the detections have a partner in `others` of the same image and category,
/// with nearly the same box and with a score that differs by at most `tolerance`.
std::int64_t count_matches(const std::vector<Detection>& detections,
                           const std::vector<Detection>& others, double tolerance) {
    constexpr double kOverlap = 0.9;  // IoU
    std::multimap<std::int64_t, const Detection*> by_image;
    for (const Detection& other : others) by_image.emplace(other.image, &other);
    return std::ranges::count_if(detections, [&](const Detection& one) {
        const auto [first, last] = by_image.equal_range(one.image);
        return std::any_of(first, last, [&](const auto& entry) {
            const Detection& other = *entry.second;
            return one.category == other.category &&
                   std::abs(one.score - other.score) <= tolerance &&
                   evaluation::intersection_over_union(one.box, other.box) >= kOverlap;
        });
    });
}

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
        const std::vector<Detection> detections = detections_of(predictions);
        const evaluation::Member member{detections, 1};
        EnsemblePredictions ensemble;
        ensemble.labels = predictions.validation.labels;
        ensemble.detections = evaluation::fuse_detections(
            leaders, std::span(&member, 1), samples().samples(), fusion_options(config_));
        const evaluation::Annotations truth = annotations_of(ensemble.labels);
        if (leaders.rank() == 0) score_fusion(truth, ensemble.detections, quality);
        quality.members_interval =
            detectors_interval(leaders, config_, truth.truth, std::span(&member, 1));
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

    void check_samples(std::span<const std::int32_t> labels, Inspector& inspector) const override {
        const std::string name = "evaluation/" + kDetectionFiles.labels;
        if (const auto text = inspector.read_text(name))
            inspector.compare_lines(name, *text, coco_annotations(annotations_of(labels)));
    }

    std::string difference(const MemberPredictions& stored, const MemberPredictions& again,
                           double tolerance) const override {
        const std::vector<Detection> first = detections_of(stored), second = detections_of(again);
        const std::int64_t matches = count_matches(first, second, tolerance);
        const std::int64_t detections = std::max(std::ssize(first), std::ssize(second));
        if (static_cast<double>(matches) >= kMatchedShare * static_cast<double>(detections))
            return "";
        return fmt::format(
            "{} of {} detections have a recomputed match (score difference <= {}); must be {} % or "
            "more",
            matches, detections, tolerance, 100 * kMatchedShare);
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

    static std::vector<Detection> detections_of(const MemberPredictions& member) {
        return member.detections ? *member.detections : detections_of(member.validation);
    }

    static std::vector<Detection> detections_of(const training::Predictions& predictions) {
        std::vector<Detection> detections;
        for (std::size_t image = 0; image < predictions.labels.size(); ++image) {
            if (predictions.labels[image] < 0) continue;
            for (std::size_t row = 0; row < kRowsPerSample; ++row) {
                const auto numbers =
                    std::span(predictions.outputs)
                        .subspan((image * kRowsPerSample + row) * kNumbersPerDetection,
                                 kNumbersPerDetection);
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

    bool add_member(int group, GroupResult& result) override {
        const std::string name = group_prefix(group) + kDetectionFiles.member;
        const auto detections = read(name, result.record.predictions_sha256);
        if (!detections) {
            is_complete_ = false;
            return false;
        }
        score_detections(annotations_->truth, *detections, result);
        members_.push_back(*detections);
        check_detections(name, *detections);
        // Diverged models may have equal detections: whole images with score 1.
        return std::ranges::any_of(
            *detections, [](const Detection& one) { return one.score > 0 && one.score < 1; });
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
        const auto [differing, stored_end] = std::ranges::mismatch(fused, *stored);
        if (differing != fused.end() || stored_end != stored->end()) {
            inspector_.report(
                name,
                "detection {} is wrong, according to the fusion of {}{}; the file has {} "
                "detections, the fusion {}",
                differing - fused.begin(), "groups/*/", kDetectionFiles.member, stored->size(),
                fused.size());
        }
        score_fusion(*annotations_, fused, quality);
        quality.members_interval = detectors_interval(*communicator, config_, truth, members);
    }

private:
    std::string labels_name() const { return "evaluation/" + kDetectionFiles.labels; }

    /// Reports the first detection whose score is no probability or whose box leaves the image.
    void check_detections(const std::string& name, const std::vector<Detection>& detections) {
        constexpr double kTolerance = 1e-3;  // pixels, of the fp32 corners
        for (const Detection& detection : detections) {
            const evaluation::TestImage& image = annotations_->images[detection.image];
            const auto is_inside = [](double begin, double length, std::int64_t side) {
                return begin >= 0 && length >= 0 &&
                       begin + length <= static_cast<double>(side) + kTolerance;
            };
            const evaluation::Box& box = detection.box;
            if (detection.score >= 0 && detection.score <= 1 &&
                is_inside(box.x, box.width, image.width) &&
                is_inside(box.y, box.height, image.height)) {
                continue;
            }
            inspector_.report(name,
                              "detection {} has score {} and box {}, {}, {}, {}; must have a score "
                              "from 0 to 1 and a box in its image",
                              &detection - detections.data(), detection.score, box.x, box.y,
                              box.width, box.height);
            return;
        }
    }

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
