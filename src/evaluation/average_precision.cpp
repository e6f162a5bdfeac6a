// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <ranges>

#include <hpcai/base/error.hpp>
#include <hpcai/base/philox.hpp>
#include <hpcai/evaluation/average_precision.hpp>

#include "matching.hpp"

namespace hpcai::evaluation {
namespace {

constexpr std::uint32_t kReplicates = 1000;

/// Recall, and the highest precision there or at any greater one, after each detection.
struct Curve {
    std::vector<double> recall;
    std::vector<double> precision;

    /// Where recall first reaches `least`; 0 where it never does.
    double precision_at(double least) const {
        const auto point = std::ranges::lower_bound(recall, least);
        return point == recall.end() ? 0
                                     : precision[static_cast<std::size_t>(point - recall.begin())];
    }
};

Curve curve_of(std::span<const std::uint8_t> hits, std::int64_t positives) {
    Curve curve;
    double right = 0;
    for (std::size_t index = 0; index < hits.size(); ++index) {
        right += hits[index];
        const double count = static_cast<double>(index + 1);
        curve.recall.push_back(right / static_cast<double>(positives));
        // numpy.spacing(1) is in pycocotools' denominator.
        curve.precision.push_back(right / (count + std::numeric_limits<double>::epsilon()));
    }
    for (std::size_t index = curve.precision.size(); index-- > 1;) {
        double& before = curve.precision[index - 1];
        before = std::max(before, curve.precision[index]);
    }
    return curve;
}

double mean_at_101_recalls(const Curve& curve) {
    double sum = curve.precision_at(1.0);
    // numpy.linspace multiplies by 0.01, and 7 * 0.01 is above 7 / 100.
    for (int index = 0; index < 100; ++index) sum += curve.precision_at(index * 0.01);
    return sum / 101;
}

double mean_at_11_recalls(const Curve& curve) {
    double sum = 0;
    for (int index = 0; index <= 10; ++index) sum += curve.precision_at(index / 10.0);
    return sum / 11;
}

double area_under(const Curve& curve) {
    double sum = 0;
    double before = 0;
    for (std::size_t index = 0; index < curve.recall.size(); ++index) {
        sum += (curve.recall[index] - before) * curve.precision[index];
        before = curve.recall[index];
    }
    return sum;
}

CategoryQuality quality_of(const CategoryMatches& matches) {
    std::vector<std::uint8_t> hits;
    for (const RankedDetection& one : matches.ranked) hits.push_back(one.hit);
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

/// How often each image is in a draw of as many with replacement.
std::vector<std::uint32_t> draw_images(std::int64_t images, CounterStream stream) {
    std::vector<std::uint32_t> times(static_cast<std::size_t>(images));
    for (std::int64_t count = 0; count < images; ++count) {
        ++times[stream.below(static_cast<std::uint32_t>(images))];
    }
    return times;
}

/// Mean over the categories with each image counted so many `times`.
std::optional<double> mean_precision(std::span<const CategoryMatches> categories,
                                     const std::vector<std::uint32_t>& times) {
    const auto times_of = [&](std::int64_t image) {
        return times[static_cast<std::size_t>(image)];
    };
    double sum = 0;
    double count = 0;
    std::vector<std::uint8_t> hits;
    for (const CategoryMatches& matches : categories) {
        std::int64_t positives = 0;
        for (const std::int64_t image : matches.image_of_box) positives += times_of(image);
        if (positives == 0) continue;
        hits.clear();
        for (const RankedDetection& one : matches.ranked) {
            hits.insert(hits.end(), times_of(one.image), one.hit);
        }
        sum += mean_at_101_recalls(curve_of(hits, positives));
        ++count;
    }
    if (count == 0) return std::nullopt;
    return sum / count;
}

}  // namespace

AveragePrecision average_precision(std::span<const std::uint8_t> hits, std::int64_t positives) {
    ensure(positives > 0, "average precision of {} boxes", positives);
    const Curve curve = curve_of(hits, positives);
    return {mean_at_101_recalls(curve), area_under(curve), mean_at_11_recalls(curve)};
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
                                              double threshold, std::uint64_t seed) {
    const std::vector<CategoryMatches> categories = match(truth, detections, threshold);
    std::vector<double> means;
    for (std::uint32_t replicate = 0; replicate < kReplicates; ++replicate) {
        const CounterStream stream(seed, RandomPurpose::confidence, replicate);
        const auto mean = mean_precision(categories, draw_images(truth.images, stream));
        if (mean) means.push_back(*mean);
    }
    if (means.empty()) return std::nullopt;
    std::ranges::sort(means);
    const std::size_t tail = means.size() / 40;  // 2.5 %
    return Interval{means[tail], means[means.size() - 1 - tail]};
}

}  // namespace hpcai::evaluation
