// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <hpcai/data/climate_file.hpp>

/// What the rows of `boxes` mean.
namespace hpcai::data::climate {

/// One row as stored: four edges and a class, or -1 five times.
using BoxRow = std::array<std::int32_t, 5>;

/// All rows of a file, kMaxClimateBoxes a sample.
struct BoxTable {
    std::vector<BoxRow> rows;
    int height = 0;  // of the pictures
    int width = 0;
    std::string place;  // for messages
};

/// Throws Error(data) for a class out of 0 to 3.
void require_classes(const BoxTable& table);

/// The order that the file states or else, with `detect`, the only one in which no edge comes
/// after its opposite or leaves the picture; corners when there is no box at all. Throws
/// Error(data) when that stated is not possible, or both or neither are.
BoxOrder order_of(const BoxTable& table, BoxOrder stated);

struct DecodedBoxes {
    std::vector<std::vector<Box>> of_sample;
    std::int64_t dropped = 0;  // without area inside the picture
};

DecodedBoxes decode_boxes(const BoxTable& table, BoxOrder order);

}  // namespace hpcai::data::climate
