// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace hpcai::tests {

/// Returns the critical value that chi-square exceeds with probability 0.001 by chance.
inline double critical_chi_square(int degrees_of_freedom) {
    constexpr std::array<std::pair<int, double>, 11> kValues{{{4, 18.467},
                                                              {6, 22.458},
                                                              {8, 26.124},
                                                              {9, 27.877},
                                                              {32, 62.487},
                                                              {63, 103.442},
                                                              {99, 148.230},
                                                              {190, 255.976},
                                                              {225, 296.288},
                                                              {961, 1102.196},
                                                              {1023, 1168.497}}};
    for (const auto& [freedom, value] : kValues) {
        if (freedom == degrees_of_freedom) return value;
    }
    throw std::out_of_range("no critical value for " + std::to_string(degrees_of_freedom));
}

/// Returns Pearson's sum of (seen - expected)^2 / expected divided by the critical value; a ratio
/// up to 1 is acceptable.
inline double chi_square_ratio(const std::vector<double>& seen, const std::vector<double>& expected,
                               int degrees_of_freedom) {
    double sum = 0;
    for (std::size_t bin = 0; bin < seen.size(); ++bin) {
        sum += (seen[bin] - expected.at(bin)) * (seen[bin] - expected[bin]) / expected[bin];
    }
    return sum / critical_chi_square(degrees_of_freedom);
}

}  // namespace hpcai::tests
