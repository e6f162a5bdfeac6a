// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/suppression.hpp"

namespace hpcai::kernels::reference {

/// Returns the `most` candidates of an image with the smallest draw keys, in ascending order.
inline std::vector<int> drawn(std::vector<int> candidates, int most, std::int32_t image_key,
                              std::uint32_t stage) {
    const auto key = [&](int candidate) {
        return draw_key(image_key, stage, static_cast<std::uint32_t>(candidate));
    };
    std::sort(candidates.begin(), candidates.end(), [&](int a, int b) { return key(a) < key(b); });
    candidates.resize(std::min(candidates.size(), static_cast<std::size_t>(most)));
    std::sort(candidates.begin(), candidates.end());
    return candidates;
}

}  // namespace hpcai::kernels::reference
