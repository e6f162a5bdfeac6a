// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace hpcai::comm {

/// Elements [begin, end) of a flat buffer.
struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t count() const { return end - begin; }
    bool operator==(const Range&) const = default;
};

}  // namespace hpcai::comm
