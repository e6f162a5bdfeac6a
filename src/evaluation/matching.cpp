// SPDX-License-Identifier: Apache-2.0
#include "matching.hpp"

#include <algorithm>
#include <tuple>

#include <hpcai/base/error.hpp>

namespace hpcai::evaluation {
namespace {

template <typename Item>
void check_place(const Item& item, const DetectionTruth& truth) {
    ensure(item.image >= 0 && item.image < truth.images && item.category >= 1 &&
               item.category <= truth.categories,
           "a box of image {} and category {} where there are {} images and {} categories",
           item.image, item.category, truth.images, truth.categories);
}

template <typename Item>
auto place_of(const Item& item) {
    return std::tuple(item.category, item.image);
}

/// Returns the detections by category, image and score, ties in input order.
std::vector<Detection> sorted_detections(const DetectionTruth& truth,
                                         std::span<const Detection> detections) {
    std::vector<Detection> sorted;
    for (const Detection& detection : detections) {
        check_place(detection, truth);
        if (is_sound(detection)) sorted.push_back(detection);
    }
    std::ranges::stable_sort(sorted, std::less<>(), [](const Detection& detection) {
        return std::tuple_cat(place_of(detection), std::tuple(-detection.score));
    });
    return sorted;
}

/// Returns the boxes by category and image, crowds last, ties in input order.
std::vector<LabelledBox> sorted_boxes(const DetectionTruth& truth) {
    std::vector<LabelledBox> sorted = truth.boxes;
    for (const LabelledBox& box : sorted) check_place(box, truth);
    std::ranges::stable_sort(sorted, std::less<>(), [](const LabelledBox& box) {
        return std::tuple_cat(place_of(box), std::tuple(box.crowd));
    });
    return sorted;
}

/// Removes the leading items at `place` from `items` and returns them.
template <typename Item, typename Place>
std::span<const Item> take(std::span<const Item>& items, const Place& place) {
    std::size_t count = 0;
    while (count < items.size() && place_of(items[count]) == place) ++count;
    const std::span<const Item> taken = items.first(count);
    items = items.subspan(count);
    return taken;
}

double overlap(const Detection& detection, const LabelledBox& box) {
    if (!box.crowd) return intersection_over_union(detection.box, box.box);
    const double shared = intersection_area(detection.box, box.box);
    return shared > 0 ? shared / area(detection.box) : 0;
}

/// Returns the index of the box that `detection` takes; crowds come last in `boxes`.
std::optional<std::size_t> choose(const Detection& detection, std::span<const LabelledBox> boxes,
                                  const std::vector<bool>& taken, double threshold) {
    double best = std::min(threshold, 1 - 1e-10);
    std::optional<std::size_t> choice;
    for (std::size_t index = 0; index < boxes.size(); ++index) {
        const bool crowd = boxes[index].crowd;
        if (crowd && choice && !boxes[*choice].crowd) break;
        if (taken[index] && !crowd) continue;
        const double candidate = overlap(detection, boxes[index]);
        if (candidate < best) continue;
        best = candidate;
        choice = index;
    }
    return choice;
}

/// Matches the detections of one image and category.
void match_image(std::span<const Detection> detections, std::span<const LabelledBox> boxes,
                 double threshold, CategoryMatches& matches) {
    std::vector<bool> taken(boxes.size());
    const auto limit = static_cast<std::size_t>(kDetectionsPerImage);
    for (const Detection& one : detections.first(std::min(detections.size(), limit))) {
        const auto choice = choose(one, boxes, taken, threshold);
        if (choice) taken[*choice] = true;
        if (choice && boxes[*choice].crowd) continue;
        matches.ranked.push_back({one.image, one.score, choice.has_value()});
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
    std::span<const Detection> found_left(found);
    std::span<const LabelledBox> labelled_left(labelled);
    std::vector<CategoryMatches> categories(static_cast<std::size_t>(truth.categories));
    while (!found_left.empty() || !labelled_left.empty()) {
        auto place =
            found_left.empty() ? place_of(labelled_left.front()) : place_of(found_left.front());
        if (!labelled_left.empty()) place = std::min(place, place_of(labelled_left.front()));
        const auto detections_here = take(found_left, place);
        const auto boxes_here = take(labelled_left, place);
        match_image(detections_here, boxes_here, threshold, categories[std::get<0>(place) - 1]);
    }
    for (CategoryMatches& matches : categories) {
        std::ranges::stable_sort(matches.ranked, std::greater<>(), &RankedDetection::score);
    }
    return categories;
}

}  // namespace hpcai::evaluation
