// SPDX-License-Identifier: Apache-2.0
#include "matching.hpp"

#include <algorithm>
#include <tuple>

#include <hpcai/base/error.hpp>

namespace hpcai::evaluation {
namespace {

template <typename Item>
void check_indices(const Item& item, const DetectionTruth& truth) {
    ensure(item.image >= 0 && item.image < truth.images && item.category >= 1 &&
               item.category <= truth.categories,
           "a box has image {} and category {}, but the test set has {} images and {} categories",
           item.image, item.category, truth.images, truth.categories);
}

template <typename Item>
auto key_of(const Item& item) {
    return std::tuple(item.category, item.image);
}

/// Returns the detections by category, image and score, ties in input order.
std::vector<Detection> sorted_detections(const DetectionTruth& truth,
                                         std::span<const Detection> detections) {
    std::vector<Detection> sorted;
    for (const Detection& detection : detections) {
        check_indices(detection, truth);
        if (is_valid(detection)) sorted.push_back(detection);
    }
    std::ranges::stable_sort(sorted, std::less<>(), [](const Detection& detection) {
        return std::tuple_cat(key_of(detection), std::tuple(-detection.score));
    });
    return sorted;
}

/// Returns the boxes by category and image, crowds last, ties in input order.
std::vector<LabelledBox> sorted_boxes(const DetectionTruth& truth) {
    std::vector<LabelledBox> sorted = truth.boxes;
    for (const LabelledBox& box : sorted) check_indices(box, truth);
    std::ranges::stable_sort(sorted, std::less<>(), [](const LabelledBox& box) {
        return std::tuple_cat(key_of(box), std::tuple(box.crowd));
    });
    return sorted;
}

/// Removes the leading items with `key` from `items` and returns them.
template <typename Item, typename Key>
std::span<const Item> pop_with_key(std::span<const Item>& items, const Key& key) {
    std::size_t count = 0;
    while (count < items.size() && key_of(items[count]) == key) ++count;
    const std::span<const Item> popped = items.first(count);
    items = items.subspan(count);
    return popped;
}

double overlap(const Detection& detection, const LabelledBox& box) {
    if (!box.crowd) return intersection_over_union(detection.box, box.box);
    const double shared = intersection_area(detection.box, box.box);
    return shared > 0 ? shared / area(detection.box) : 0;
}

/// Returns the index of the box that `detection` matches; crowds are last in `boxes`.
std::optional<std::size_t> best_box(const Detection& detection, std::span<const LabelledBox> boxes,
                                    const std::vector<bool>& is_matched, double threshold) {
    double best = std::min(threshold, 1 - 1e-10);
    std::optional<std::size_t> matched_box;
    for (std::size_t index = 0; index < boxes.size(); ++index) {
        const bool crowd = boxes[index].crowd;
        if (crowd && matched_box && !boxes[*matched_box].crowd) break;
        if (is_matched[index] && !crowd) continue;
        const double shared = overlap(detection, boxes[index]);
        if (shared < best) continue;
        best = shared;
        matched_box = index;
    }
    return matched_box;
}

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

}  // namespace

std::vector<CategoryMatches> match(const DetectionTruth& truth,
                                   std::span<const Detection> detections, double threshold) {
    const std::vector<Detection> found = sorted_detections(truth, detections);
    const std::vector<LabelledBox> labelled = sorted_boxes(truth);
    std::span<const Detection> remaining_detections(found);
    std::span<const LabelledBox> remaining_boxes(labelled);
    std::vector<CategoryMatches> categories(static_cast<std::size_t>(truth.categories));
    while (!remaining_detections.empty() || !remaining_boxes.empty()) {
        auto key = remaining_detections.empty() ? key_of(remaining_boxes.front())
                                                : key_of(remaining_detections.front());
        if (!remaining_boxes.empty()) key = std::min(key, key_of(remaining_boxes.front()));
        const auto image_detections = pop_with_key(remaining_detections, key);
        const auto image_boxes = pop_with_key(remaining_boxes, key);
        match_image(image_detections, image_boxes, threshold, categories[std::get<0>(key) - 1]);
    }
    for (CategoryMatches& matches : categories) {
        std::ranges::stable_sort(matches.ranked, std::greater<>(), &RankedDetection::score);
    }
    return categories;
}

}  // namespace hpcai::evaluation
