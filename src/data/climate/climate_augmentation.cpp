// SPDX-License-Identifier: Apache-2.0
#include "climate_augmentation.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include <hpcai/base/error.hpp>
#include <hpcai/data/climate_channels.hpp>

namespace hpcai::data {
namespace {

constexpr std::array kNorthwardWinds{ClimateChannel::meridional_wind_850,
                                     ClimateChannel::meridional_wind_bottom};

std::size_t row_elements(const FieldSize& size) {
    return std::size_t{kClimateChannels} * size.width;
}

void require_size(std::span<const float> fields, const FieldSize& size) {
    ensure(fields.size() == size.height * row_elements(size),
           "{} values of climate fields of {} x {} pixels", fields.size(), size.height, size.width);
}

}  // namespace

void roll_longitude(std::span<float> fields, const FieldSize& size, int columns,
                    std::vector<Box>& boxes) {
    require_size(fields, size);
    ensure(columns >= 0 && columns < size.width, "a roll by {} of {} columns", columns, size.width);
    for (int row = 0; row < size.height; ++row) {
        const auto pixels = fields.subspan(row * row_elements(size), row_elements(size));
        std::rotate(pixels.begin(), pixels.end() - std::ptrdiff_t{columns} * kClimateChannels,
                    pixels.end());
    }
    const auto width = static_cast<float>(size.width);
    for (Box& box : boxes) {
        box.x1 += static_cast<float>(columns);
        box.x2 += static_cast<float>(columns);
        if (box.x1 < width) continue;
        box.x1 -= width;
        box.x2 -= width;
    }
    std::erase_if(boxes, [width](const Box& box) { return box.x2 > width; });
}

void flip_hemispheres(std::span<float> fields, const FieldSize& size, std::vector<Box>& boxes,
                      std::span<const double> mean, std::span<const double> standard_deviation) {
    require_size(fields, size);
    const std::size_t row = row_elements(size);
    const auto height = static_cast<std::size_t>(size.height);
    for (std::size_t south = 0; south < height / 2; ++south) {
        const auto a = fields.subspan(south * row, row);
        std::swap_ranges(a.begin(), a.end(),
                         fields.begin() + static_cast<std::ptrdiff_t>((height - 1 - south) * row));
    }
    for (const ClimateChannel wind : kNorthwardWinds) {
        const std::size_t channel = index_of(wind);
        // -v in units of (v - mean) / deviation.
        const double shift = mean.empty() ? 0.0 : 2 * mean[channel] / standard_deviation[channel];
        for (std::size_t i = channel; i < fields.size(); i += kClimateChannels) {
            fields[i] = static_cast<float>(-fields[i] - shift);
        }
    }
    const auto bottom = static_cast<float>(size.height);
    for (Box& box : boxes) {
        box = {box.x1, bottom - box.y2, box.x2, bottom - box.y1, box.category};
    }
}

}  // namespace hpcai::data
