// SPDX-License-Identifier: Apache-2.0
#include "box_columns.hpp"

#include <algorithm>

#include <hpcai/base/error.hpp>

namespace hpcai::data::climate {
namespace {

constexpr const char* kChooseOrder =
    "choose the order with data transcode --box-order corners or ranges";
constexpr BoxRow kPadding{-1, -1, -1, -1, -1};

struct Edges {
    std::int32_t top, left, bottom, right;
};

Edges edges_of(const BoxRow& row, BoxOrder order) {
    if (order == BoxOrder::corners) return {row[0], row[1], row[2], row[3]};
    return {row[0], row[2], row[1], row[3]};
}

/// Returns the first row that is impossible in `order`; rows.size() if there is none.
std::size_t first_impossible(const BoxTable& table, BoxOrder order) {
    const auto impossible = [&](const BoxRow& row) {
        if (row == kPadding) return false;
        const Edges e = edges_of(row, order);
        return e.top > e.bottom || e.left > e.right || e.bottom > table.height ||
               e.right > table.width;
    };
    return std::ranges::find_if(table.rows, impossible) - table.rows.begin();
}

std::string where(const BoxTable& table, std::size_t row) {
    return fmt::format("{}: sample {}, row {}", table.location, row / kMaxClimateBoxes,
                       row % kMaxClimateBoxes);
}

}  // namespace

void require_classes(const BoxTable& table) {
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
        const BoxRow& row = table.rows[i];
        require(row == kPadding || (row[4] >= 0 && row[4] < kClimateCategories), ExitCode::data,
                "{}: class {}: expected 0 to {}", where(table, i), row[4], kClimateCategories - 1);
    }
}

BoxOrder determine_box_order(const BoxTable& table, BoxOrder stated) {
    const std::size_t rows = table.rows.size();
    if (stated != BoxOrder::detect) {
        const std::size_t wrong = first_impossible(table, stated);
        require(wrong == rows, ExitCode::data,
                "{}: the box is not possible in the column order that the file states; {}",
                where(table, wrong), kChooseOrder);
        return stated;
    }
    const std::size_t corners = first_impossible(table, BoxOrder::corners);
    const std::size_t ranges = first_impossible(table, BoxOrder::ranges);
    const bool any = std::any_of(table.rows.begin(), table.rows.end(),
                                 [](const BoxRow& row) { return row != kPadding; });
    require(!any || corners != rows || ranges != rows, ExitCode::data,
            "{}: columns ymin,xmin,ymax,xmax (corners) and ymin,ymax,xmin,xmax (ranges) are both "
            "possible for all rows; {}",
            table.location, kChooseOrder);
    require(corners == rows || ranges == rows, ExitCode::data,
            "{}: the rows fit neither ymin,xmin,ymax,xmax (corners) nor ymin,ymax,xmin,xmax "
            "(ranges) within {} x {} pixels; corners first fail at {}, ranges at {}",
            table.location, table.height, table.width, where(table, corners), where(table, ranges));
    return corners == rows ? BoxOrder::corners : BoxOrder::ranges;
}

DecodedBoxes decode_boxes(const BoxTable& table, BoxOrder order) {
    DecodedBoxes result;
    result.boxes_by_sample.resize(table.rows.size() / kMaxClimateBoxes);
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
        const BoxRow& row = table.rows[i];
        if (row == kPadding) continue;
        const Edges e = edges_of(row, order);
        const Box box{static_cast<float>(std::max(e.left, 0)),
                      static_cast<float>(std::max(e.top, 0)),
                      static_cast<float>(std::min(e.right, table.width)),
                      static_cast<float>(std::min(e.bottom, table.height)), row[4] + 1};
        if (box.x1 < box.x2 && box.y1 < box.y2) {
            result.boxes_by_sample[i / kMaxClimateBoxes].push_back(box);
        } else {
            ++result.dropped;
        }
    }
    return result;
}

}  // namespace hpcai::data::climate
