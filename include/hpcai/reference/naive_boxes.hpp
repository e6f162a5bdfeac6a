// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <hpcai/ops/box_math.hpp>
#include <hpcai/ops/detection.hpp>

/// Boxes in double: overlaps, deltas, anchors, sampling and suppression as defined in
/// hpcai/ops/detection.hpp, one box at a time.
namespace hpcai::naive {

struct Box {
    double x1 = 0, y1 = 0, x2 = 0, y2 = 0;

    double width() const { return x2 - x1; }
    double height() const { return y2 - y1; }
    bool has_area() const { return width() > 0 && height() > 0; }
    bool is_finite() const {
        return std::isfinite(x1) && std::isfinite(y1) && std::isfinite(x2) && std::isfinite(y2);
    }
    std::array<double, 4> numbers() const { return {x1, y1, x2, y2}; }
};

inline double iou(const Box& a, const Box& b) {
    const double width = std::max(std::min(a.x2, b.x2) - std::max(a.x1, b.x1), 0.0);
    const double height = std::max(std::min(a.y2, b.y2) - std::max(a.y1, b.y1), 0.0);
    const double shared = width * height;
    return shared / (a.width() * a.height() + b.width() * b.height() - shared);
}

/// Returns the deltas (x, y, w, h) from which decoded() computes `box`.
inline std::array<double, 4> encoded(const Box& box, const Box& from, const ops::BoxCoder& coder) {
    const double xy = coder.weight_xy, wh = coder.weight_wh;
    return {xy * ((box.x1 + box.x2) - (from.x1 + from.x2)) / 2 / from.width(),
            xy * ((box.y1 + box.y2) - (from.y1 + from.y2)) / 2 / from.height(),
            wh * std::log(box.width() / from.width()), wh * std::log(box.height() / from.height())};
}

inline Box decoded(const std::array<double, 4>& deltas, const Box& from,
                   const ops::BoxCoder& coder) {
    const double xy = coder.weight_xy, wh = coder.weight_wh, max_log_ratio = std::log(1000.0 / 16);
    const double x = (from.x1 + from.x2) / 2 + deltas[0] / xy * from.width();
    const double y = (from.y1 + from.y2) / 2 + deltas[1] / xy * from.height();
    const double width = std::exp(std::min(deltas[2] / wh, max_log_ratio)) * from.width();
    const double height = std::exp(std::min(deltas[3] / wh, max_log_ratio)) * from.height();
    return {x - width / 2, y - height / 2, x + width / 2, y + height / 2};
}

inline Box clipped(const Box& box, std::int64_t height, std::int64_t width) {
    const auto inside = [](double value, std::int64_t extent) {
        return std::clamp(value, 0.0, static_cast<double>(extent));
    };
    return {inside(box.x1, width), inside(box.y1, height), inside(box.x2, width),
            inside(box.y2, height)};
}

/// An anchor and the position of its logit.
struct PlacedAnchor {
    Box box;
    std::size_t level = 0;
    std::int64_t pixel = 0;  // number of the cell: y * width + x
    std::int64_t place = 0;  // index in the cell
};

inline std::vector<PlacedAnchor> placed(const ops::Anchors& anchors) {
    std::vector<PlacedAnchor> all;
    for (std::size_t level = 0; level < anchors.levels.size(); ++level) {
        const auto& at = anchors.levels[level];
        for (std::int64_t y = 0; y < at.height; ++y)
            for (std::int64_t x = 0; x < at.width; ++x)
                for (std::size_t place = 0; place < at.cell_anchors.size(); ++place) {
                    const auto& cell = at.cell_anchors[place];
                    const auto dx = static_cast<double>(x * at.stride);
                    const auto dy = static_cast<double>(y * at.stride);
                    all.push_back({{cell[0] + dx, cell[1] + dy, cell[2] + dx, cell[3] + dy},
                                   level,
                                   y * at.width + x,
                                   static_cast<std::int64_t>(place)});
                }
    }
    return all;
}

/// Returns up to `count` candidates, those with the lowest ops::sampling_key() in `stage`, sorted.
inline std::vector<std::int64_t> drawn(const std::vector<std::int64_t>& candidates,
                                       std::int64_t count, std::uint32_t image_key,
                                       std::uint32_t stage) {
    std::vector<std::pair<std::uint32_t, std::int64_t>> keyed;
    for (const std::int64_t candidate : candidates) {
        keyed.emplace_back(
            ops::sampling_key(image_key, stage, static_cast<std::uint32_t>(candidate)), candidate);
    }
    std::sort(keyed.begin(), keyed.end());
    std::vector<std::int64_t> result;
    for (const auto& [key, candidate] : keyed) {
        if (static_cast<std::int64_t>(result.size()) < count) result.push_back(candidate);
    }
    std::sort(result.begin(), result.end());
    return result;
}

struct ScoredBox {
    Box box;
    double score = 0;
    std::int64_t candidate = 0;  // number of its anchor or region; orders equal scores
    std::int64_t label = 0;
};

inline void sort_by_score(std::vector<ScoredBox>& boxes) {
    std::sort(boxes.begin(), boxes.end(), [](const ScoredBox& a, const ScoredBox& b) {
        return a.score != b.score ? a.score > b.score : a.candidate < b.candidate;
    });
}

/// Keeps boxes whose IoU with every kept box before it is at most `max_iou`. The order is that of
/// sort_by_score().
inline std::vector<ScoredBox> unsuppressed(std::vector<ScoredBox> boxes, double max_iou) {
    sort_by_score(boxes);
    std::vector<ScoredBox> kept;
    for (const ScoredBox& box : boxes) {
        if (std::none_of(kept.begin(), kept.end(), [&](const ScoredBox& better) {
                return iou(better.box, box.box) > max_iou;
            })) {
            kept.push_back(box);
        }
    }
    return kept;
}

}  // namespace hpcai::naive
