// SPDX-License-Identifier: Apache-2.0
#include <hpcai/evaluation/average_precision.hpp>
#include <hpcai/evaluation/box_fusion.hpp>
#include <hpcai/evaluation/coco_json.hpp>
#include <hpcai/evaluation/detection_ensemble.hpp>
#include <hpcai/storage/file.hpp>

#include "group_job.hpp"
#include "workload.hpp"

namespace hpcai::benchmark {
namespace {

// Of a detection in the network's output: x1, y1, x2, y2, score, category.
constexpr std::int64_t kNumbers = 6;
constexpr std::int64_t kRowsPerSample = evaluation::kDetectionsPerImage;

class Detector final : public Workload {
public:
    explicit Detector(const Start& start) : start_(start) {}

    std::string metric() const override { return "coco_ap50"; }
    std::int64_t outputs_per_sample() const override { return kRowsPerSample * kNumbers; }

    void judge(const training::Predictions& predictions, GroupResult& result) const override {
        result.quality = mean_of(
            evaluation::detection_quality(annotations_of(predictions.labels).truth,
                                          detections_of(predictions), evaluation::kScoreThreshold));
        result.quality_top_5 = nothing("detections have no Top-5");
    }

    void store(const training::Predictions& predictions,
               const std::filesystem::path& directory) const override {
        storage::write_file_durably(
            directory / "detections.json",
            coco_detections(annotations_of(predictions.labels), detections_of(predictions)));
    }

    EnsemblePredictions combine(const GroupOutcome& mine, comm::Communicator& leaders,
                                QualityRecord& quality) const override {
        const std::vector<evaluation::Detection> said = detections_of(mine.validation);
        const evaluation::Member member{said, 1};
        const bool fuses = start_.config.bagging.aggregation == config::Aggregation::wbf;
        const evaluation::FusionOptions options{
            .merging =
                fuses ? evaluation::Merging::weighted_fusion : evaluation::Merging::suppression,
            .overlap = overlap(fuses),
            .lowest_score = start_.config.detector.score_threshold,
            .limit = kRowsPerSample};
        EnsemblePredictions ensemble;
        ensemble.labels = mine.validation.labels;
        ensemble.detections = evaluation::fuse_detections(leaders, std::span(&member, 1),
                                                          samples().samples(), options);
        if (leaders.rank() == 0) judge_ensemble(ensemble, quality);
        return ensemble;
    }

    void store(const EnsemblePredictions& ensemble,
               const std::filesystem::path& directory) const override {
        const evaluation::Annotations annotations = annotations_of(ensemble.labels);
        storage::write_file_durably(directory / "ensemble.json",
                                    coco_detections(annotations, ensemble.detections));
        storage::write_file_durably(directory / "annotations.json", coco_annotations(annotations));
    }

private:
    const data::SampleSet& samples() const { return *start_.samples.validation; }
    double overlap(bool fuses) const {
        const double configured = start_.config.detector.fusion_overlap;
        if (configured > 0) return configured;
        return fuses ? evaluation::kFusionOverlap : evaluation::kSuppressionOverlap;
    }

    /// The test samples; those that are not scored have nothing in them.
    evaluation::Annotations annotations_of(std::span<const std::int32_t> labels) const {
        const data::SampleFormat& format = samples().format();
        evaluation::Annotations known;
        known.truth = {samples().samples(), samples().classes(), {}};
        ensure(static_cast<std::int64_t>(labels.size()) == known.truth.images,
               "labels of {} of {} images", labels.size(), known.truth.images);
        for (int category = 1; category <= samples().classes(); ++category) {
            known.categories.push_back({category, samples().class_name(category)});
        }
        for (std::int64_t image = 0; image < known.truth.images; ++image) {
            const auto sample = static_cast<std::uint32_t>(image);
            known.images.push_back({image, samples().name(sample), format.width, format.height});
            if (labels[sample] < 0) continue;
            for (const data::Box& box : samples().boxes(sample)) {
                known.truth.boxes.push_back(
                    {image, box.category,
                     evaluation::box_of_corners(box.x1, box.y1, box.x2, box.y2)});
            }
        }
        return known;
    }

    /// Of the samples that are scored.
    static std::vector<evaluation::Detection> detections_of(
        const training::Predictions& predictions) {
        std::vector<evaluation::Detection> found;
        for (std::size_t image = 0; image < predictions.labels.size(); ++image) {
            if (predictions.labels[image] < 0) continue;
            for (std::int64_t row = 0; row < kRowsPerSample; ++row) {
                const auto at = static_cast<std::size_t>(
                    (static_cast<std::int64_t>(image) * kRowsPerSample + row) * kNumbers);
                const auto numbers =
                    std::span(predictions.outputs).subspan(at, static_cast<std::size_t>(kNumbers));
                const auto category = static_cast<std::int32_t>(numbers[5]);
                if (category == 0) break;  // the rest is unused
                found.push_back(
                    {static_cast<std::int64_t>(image), category, numbers[4],
                     evaluation::box_of_corners(numbers[0], numbers[1], numbers[2], numbers[3])});
            }
        }
        return found;
    }

    static Quantity mean_of(const evaluation::DetectionQuality& quality) {
        if (!quality.mean) return nothing("no test sample has a box");
        return {quality.mean->coco, ""};
    }

    void judge_ensemble(const EnsemblePredictions& ensemble, QualityRecord& quality) const {
        const evaluation::DetectionTruth truth = annotations_of(ensemble.labels).truth;
        const auto strict =
            evaluation::detection_quality(truth, ensemble.detections, evaluation::kScoreThreshold);
        const auto tolerant = evaluation::detection_quality(truth, ensemble.detections,
                                                            evaluation::kTolerantThreshold);
        quality.ensemble = mean_of(strict);
        quality.ensemble_top_5 = nothing("detections have no Top-5");
        quality.ensemble_majority = nothing("detections have no majority");
        quality.out_of_bag = nothing("bagging.out_of_bag is false");
        const std::string none = "no test sample has a box";
        quality.ensemble_voc_ap50 =
            strict.mean ? Quantity{strict.mean->voc_area, ""} : nothing(none);
        quality.ensemble_ap10 = mean_of(tolerant);
        for (std::size_t index = 0; index < strict.categories.size(); ++index) {
            quality.categories.push_back(
                category_record(index, strict.categories[index], tolerant.categories[index]));
        }
        const auto interval = evaluation::bootstrap_interval_95(truth, ensemble.detections,
                                                                evaluation::kScoreThreshold);
        quality.confidence_interval = {nothing(none), nothing(none), 0.95,
                                       "bootstrap over test samples"};
        if (!interval) return;
        quality.confidence_interval.low = {interval->low, ""};
        quality.confidence_interval.high = {interval->high, ""};
    }

    CategoryRecord category_record(std::size_t index, const evaluation::CategoryQuality& strict,
                                   const evaluation::CategoryQuality& tolerant) const {
        CategoryRecord record{.name = samples().class_name(static_cast<std::int32_t>(index) + 1),
                              .boxes = strict.boxes,
                              .detections = strict.detections,
                              .hits = strict.hits};
        record.ap50 = record.voc_ap50 = record.ap10 = nothing("no test sample has such a box");
        if (strict.precision) {
            record.ap50 = {strict.precision->coco, ""};
            record.voc_ap50 = {strict.precision->voc_area, ""};
            record.ap10 = {tolerant.precision->coco, ""};
        }
        return record;
    }

    const Start& start_;
};

}  // namespace

std::unique_ptr<const Workload> make_detection(const Start& start) {
    return std::make_unique<Detector>(start);
}

}  // namespace hpcai::benchmark
