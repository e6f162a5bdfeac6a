// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include <hpcai/base/error.hpp>
#include <hpcai/base/philox.hpp>
#include <hpcai/evaluation/average_precision.hpp>

#include "matching.hpp"

namespace hpcai::evaluation {
namespace {

template <typename Item>
void check_indices(const Item& item, const DetectionTruth& truth) {
    ensure(item.image >= 0 && item.image < truth.images && item.category >= 1 &&
               item.category <= truth.categories,
           "a box has image {} and category {}, but the test set has {} images and {} categories",
           item.image, item.category, truth.images, truth.categories);
}

/// Returns COCO's overlap: the IoU; for a crowd, the intersection over the area of the detection.
double overlap(const Detection& detection, const LabelledBox& box) {
    if (!box.crowd) return intersection_over_union(detection.box, box.box);
    const double shared = intersection_area(detection.box, box.box);
    return shared > 0 ? shared / area(detection.box) : 0;
}

/// Returns the box that `detection` matches, as pycocotools does; crowds are last in `boxes`.
std::optional<std::size_t> best_box(const Detection& detection, std::span<const LabelledBox> boxes,
                                    const std::vector<bool>& is_matched, double threshold) {
    double best = std::min(threshold, 1 - 1e-10);
    std::optional<std::size_t> matched_box;
    for (std::size_t index = 0; index < boxes.size(); ++index) {
        const bool crowd = boxes[index].crowd;
        if (crowd && matched_box && !boxes[*matched_box].crowd) break;
        if (is_matched[index] && !crowd) continue;
        const double ratio = overlap(detection, boxes[index]);
        if (ratio < best) continue;
        best = ratio;
        matched_box = index;
    }
    return matched_box;
}

/// Matches the detections of one category and image, best first.
void match_image(std::span<const Detection> detections, std::span<const LabelledBox> boxes,
                 double threshold, CategoryMatches& matches) {
    std::vector<bool> is_matched(boxes.size());
    const auto limit = static_cast<std::size_t>(kDetectionsPerImage);
    for (const Detection& detection : detections.first(std::min(detections.size(), limit))) {
        const auto matched_box = best_box(detection, boxes, is_matched, threshold);
        if (matched_box) is_matched[*matched_box] = true;
        if (matched_box && boxes[*matched_box].crowd) continue;
        matches.ranked.push_back({detection.image, detection.score, matched_box.has_value()});
    }
    for (const LabelledBox& box : boxes) {
        if (!box.crowd) matches.image_of_box.push_back(box.image);
    }
}

constexpr std::uint64_t kQualitySeed = 1;  // of bootstrap_interval_95()

/// Recall and precision after each true positive. A false positive adds no point: its recall would
/// equal that of the previous point and its precision would be lower, so no mean would change.
class Curve {
public:
    explicit Curve(std::int64_t positives) : positives_(static_cast<double>(positives)) {}

    void add(bool hit, std::uint32_t times) {
        if (!hit) detections_ += times;
        for (std::uint32_t count = 0; hit && count < times; ++count) {
            detections_ += 1;
            const double hits = static_cast<double>(recall_.size() + 1);
            recall_.push_back(hits / positives_);
            // pycocotools adds numpy.spacing(1) to the denominator.
            precision_.push_back(hits / (detections_ + std::numeric_limits<double>::epsilon()));
        }
    }

    /// Raises each precision to the highest at any greater recall. Call it after the last add().
    void make_monotone() {
        for (std::size_t index = precision_.size(); index-- > 1;) {
            precision_[index - 1] = std::max(precision_[index - 1], precision_[index]);
        }
    }

    /// Returns the precision at the first recall of at least `min_recall`; 0 if there is none.
    double precision_at(double min_recall) const {
        const auto point = std::ranges::lower_bound(recall_, min_recall);
        return point == recall_.end() ? 0 : precision_[point - recall_.begin()];
    }

    double area() const {
        double sum = 0, previous_recall = 0;
        for (std::size_t index = 0; index < recall_.size(); ++index) {
            sum += (recall_[index] - previous_recall) * precision_[index];
            previous_recall = recall_[index];
        }
        return sum;
    }

private:
    double positives_, detections_ = 0;
    std::vector<double> recall_, precision_;
};

double mean_at_101_recalls(const Curve& curve) {
    double sum = curve.precision_at(1.0);
    // As pycocotools: numpy.linspace multiplies by 0.01, which differs from a division by 100.
    for (int index = 0; index < 100; ++index) sum += curve.precision_at(index * 0.01);
    return sum / 101;
}

double mean_at_11_recalls(const Curve& curve) {
    double sum = 0;
    for (int index = 0; index <= 10; ++index) sum += curve.precision_at(index / 10.0);
    return sum / 11;
}

CategoryQuality quality_of(const CategoryMatches& matches) {
    std::vector<std::uint8_t> hits;
    for (const RankedDetection& detection : matches.ranked) hits.push_back(detection.hit);
    CategoryQuality quality;
    quality.boxes = static_cast<std::int64_t>(matches.image_of_box.size());
    quality.detections = static_cast<std::int64_t>(hits.size());
    quality.hits = std::ranges::count(hits, std::uint8_t{1});
    if (quality.boxes > 0) quality.precision = average_precision(hits, quality.boxes);
    return quality;
}

std::optional<AveragePrecision> mean_of(std::span<const CategoryQuality> categories) {
    AveragePrecision sum;
    double count = 0;
    for (const CategoryQuality& category : categories) {
        if (!category.precision) continue;
        sum.coco += category.precision->coco;
        sum.voc_area += category.precision->voc_area;
        sum.voc_2007 += category.precision->voc_2007;
        ++count;
    }
    if (count == 0) return std::nullopt;
    return AveragePrecision{sum.coco / count, sum.voc_area / count, sum.voc_2007 / count};
}

}  // namespace

std::vector<CategoryMatches> match(const DetectionTruth& truth,
                                   std::span<const Detection> detections, double threshold) {
    struct Image {
        std::vector<Detection> detections;
        std::vector<LabelledBox> boxes;
    };
    std::map<std::pair<std::int32_t, std::int64_t>, Image> images;  // by category and image
    for (const Detection& detection : detections) {
        check_indices(detection, truth);
        if (!is_valid(detection)) continue;
        images[{detection.category, detection.image}].detections.push_back(detection);
    }
    for (const LabelledBox& box : truth.boxes) {
        check_indices(box, truth);
        images[{box.category, box.image}].boxes.push_back(box);
    }
    std::vector<CategoryMatches> categories(static_cast<std::size_t>(truth.categories));
    for (auto& [key, image] : images) {
        std::ranges::stable_sort(image.detections, std::greater<>(), &Detection::score);
        std::ranges::stable_sort(image.boxes, {}, &LabelledBox::crowd);
        match_image(image.detections, image.boxes, threshold, categories[key.first - 1]);
    }
    for (CategoryMatches& matches : categories) {
        std::ranges::stable_sort(matches.ranked, std::greater<>(), &RankedDetection::score);
    }
    return categories;
}

AveragePrecision average_precision(std::span<const std::uint8_t> hits, std::int64_t positives) {
    ensure(positives > 0, "expected 1 or more labelled boxes, got {}", positives);
    Curve curve(positives);
    for (const std::uint8_t hit : hits) curve.add(hit != 0, 1);
    curve.make_monotone();
    return {mean_at_101_recalls(curve), curve.area(), mean_at_11_recalls(curve)};
}

DetectionQuality detection_quality(const DetectionTruth& truth,
                                   std::span<const Detection> detections, double threshold) {
    DetectionQuality quality;
    for (const CategoryMatches& matches : match(truth, detections, threshold)) {
        quality.categories.push_back(quality_of(matches));
    }
    quality.mean = mean_of(quality.categories);
    return quality;
}

std::optional<Interval> bootstrap_interval_95(const DetectionTruth& truth,
                                              std::span<const Detection> detections,
                                              double threshold) {
    const std::vector<CategoryMatches> categories = match(truth, detections, threshold);
    return image_interval_95(
        truth.images,
        [&](std::span<const std::uint32_t> times) {
            return mean_precision_of_draw(categories, times);
        },
        kQualitySeed);
}

std::optional<Interval> paired_precision_interval_95(const DetectionTruth& truth,
                                                     std::span<const Detection> first,
                                                     std::span<const Detection> second) {
    const std::vector<CategoryMatches> matches_1 = match(truth, first, kAp50Overlap);
    const std::vector<CategoryMatches> matches_2 = match(truth, second, kAp50Overlap);
    return image_interval_95(truth.images,
                             [&](std::span<const std::uint32_t> times) -> std::optional<double> {
                                 const auto mean_1 = mean_precision_of_draw(matches_1, times);
                                 if (!mean_1) return std::nullopt;
                                 return *mean_precision_of_draw(matches_2, times) - *mean_1;
                             });
}

std::optional<double> mean_precision_of_draw(std::span<const CategoryMatches> categories,
                                             std::span<const std::uint32_t> times) {
    double sum = 0, count = 0;
    for (const CategoryMatches& matches : categories) {
        std::int64_t positives = 0;
        for (const std::int64_t image : matches.image_of_box) positives += times[image];
        if (positives == 0) continue;
        Curve curve(positives);
        for (const auto& [image, score, hit] : matches.ranked) curve.add(hit, times[image]);
        curve.make_monotone();
        sum += mean_at_101_recalls(curve);
        ++count;
    }
    if (count == 0) return std::nullopt;
    return sum / count;
}

}  // namespace hpcai::evaluation
