// SPDX-License-Identifier: Apache-2.0
#include <hpcai/evaluation/average_precision.hpp>
#include <hpcai/workloads/intervals.hpp>

#include "judge_detections.hpp"

namespace hpcai::workloads {
namespace {

using evaluation::Detection;
using evaluation::DetectionTruth;
using evaluation::Judgement;

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

}  // namespace

QualityComparison compare_detections(const ComparedResults& results) {
    const auto annotations =
        evaluation::read_coco_annotations(results.file_of_first(kDetectionFiles.labels));
    const auto read = [&](const std::filesystem::path& file) {
        return evaluation::read_coco_detections(file, annotations);
    };
    const auto said_1 = read(results.file_of_first(kDetectionFiles.ensemble));
    const auto said_2 = read(results.file_of_second(kDetectionFiles.ensemble));
    const std::int64_t images = annotations.truth.images;
    if (said_1 == said_2) return {Judgement::same, "both have the same detections"};
    const auto interval = evaluation::paired_interval_95(
        images, kDraws, [&](std::span<const std::uint32_t> times) -> std::optional<double> {
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
    return compare_by(*interval, images);
}

}  // namespace hpcai::workloads
