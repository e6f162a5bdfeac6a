// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "support/largest_error.hpp"

namespace hpcai::data::test {

/// The largest and the mean difference of 8-bit pixels, in levels of 255.
class PixelErrors {
public:
    PixelErrors(const std::string& what, double largest, double mean)
        : largest_(what + ", largest error, levels of 255", largest),
          mean_(what + ", mean error, levels of 255", mean) {}
    ~PixelErrors() { mean_.add(sum_ / static_cast<double>(count_)); }

    void add(std::span<const std::uint8_t> got, std::span<const std::uint8_t> want,
             const std::string& where) {
        ASSERT_EQ(got.size(), want.size()) << where;
        int largest = 0;
        for (std::size_t i = 0; i < got.size(); ++i) {
            const int error = std::abs(got[i] - want[i]);
            largest = std::max(largest, error);
            sum_ += error;
        }
        count_ += got.size();
        largest_.add(largest, where);
    }

private:
    tests::LargestError largest_;
    tests::LargestError mean_;
    double sum_ = 0;
    std::size_t count_ = 0;
};

}  // namespace hpcai::data::test
