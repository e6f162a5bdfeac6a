// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include <hpcai/data/image.hpp>

/// Augmentation of weather that yields possible weather. A mirror image would not: its cyclones
/// would rotate the wrong way.
namespace hpcai::data {

/// Extents of the fields of one sample (height, width, 16).
struct FieldSize {
    int height = 0;
    int width = 0;
};

/// Rotates the planet: moves column x of a grid of all longitudes, and boxes, to (x + columns)
/// modulo the width. Removes boxes that would cross the seam. `columns` is from 0 to width - 1.
void roll_longitude(std::span<float> fields, const FieldSize& size, int columns,
                    std::vector<Box>& boxes);

/// Exchanges north and south: reverses rows, negates the northward winds V850 and VBOT, and mirrors
/// boxes. `mean` and `standard_deviation` (16 each) are the normalization of `fields`; both are
/// empty for fields in physical units.
void flip_hemispheres(std::span<float> fields, const FieldSize& size, std::vector<Box>& boxes,
                      std::span<const double> mean, std::span<const double> standard_deviation);

}  // namespace hpcai::data
