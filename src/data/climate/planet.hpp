// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "grid.hpp"

namespace hpcai::data::climate {

/// Coasts and mountains: the same for every seed, as the Earth's are for every year.
struct Surface {
    Field height;                    // m above the sea, (768, 1152)
    std::vector<std::uint8_t> land;  // 1 or 0, likewise

    static std::size_t at(int row, int column) {
        return std::size_t{kClimateColumns} * row + column;
    }
};

Surface make_surface();

}  // namespace hpcai::data::climate
