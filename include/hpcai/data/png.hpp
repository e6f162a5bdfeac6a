// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <hpcai/data/image.hpp>

namespace hpcai::data {

/// The picture as a PNG file (ISO/IEC 15948): 8-bit RGB, not interlaced.
std::vector<std::uint8_t> encode_png(const ImageView& image);

}  // namespace hpcai::data
