// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include <hpcai/evaluation/detection.hpp>

namespace hpcai::evaluation {

Box box_from_corners(double x1, double y1, double x2, double y2) {
    return {x1, y1, x2 - x1, y2 - y1};
}

double area(const Box& box) {
    return box.width * box.height;
}

double intersection_area(const Box& a, const Box& b) {
    const double width = std::min(a.width + a.x, b.width + b.x) - std::max(a.x, b.x);
    if (width <= 0) return 0;
    const double height = std::min(a.height + a.y, b.height + b.y) - std::max(a.y, b.y);
    return height <= 0 ? 0 : width * height;
}

double intersection_over_union(const Box& a, const Box& b) {
    const double shared = intersection_area(a, b);
    return shared > 0 ? shared / (area(a) + area(b) - shared) : 0;
}

bool is_valid(const Detection& detection) {
    const Box& box = detection.box;
    return std::ranges::all_of(std::array{detection.score, box.x, box.y, box.width, box.height},
                               [](double number) { return std::abs(number) <= kMaxMagnitude; }) &&
           box.width >= 0 && box.height >= 0;
}

}  // namespace hpcai::evaluation
