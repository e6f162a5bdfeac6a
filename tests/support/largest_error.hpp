// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace hpcai::tests {

/// The largest error of one number of the program. The test fails if an error exceeds the
/// tolerance. The destructor writes the largest error to the test's result file, where
/// scripts/verification.py reads it. `number` is the first column of tests/verification_rows.md; it
/// is used once in a test and contains no quotes.
class LargestError {
public:
    LargestError(std::string number, double tolerance)
        : number_(std::move(number)), tolerance_(tolerance) {}
    LargestError(const LargestError&) = delete;
    LargestError& operator=(const LargestError&) = delete;
    ~LargestError() {
        EXPECT_TRUE(compared_) << number_ << ": nothing was compared";
        testing::Test::RecordProperty(number_, fmt::format("{:.1e} of {:.0e}", error_, tolerance_));
    }

    /// `what` describes the place of a failure. A NaN counts as infinite.
    void add(double error, const std::string& what = "") {
        compared_ = true;
        if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
        error_ = std::max(error_, error);
        EXPECT_LE(error, tolerance_) << number_ << (what.empty() ? "" : ", ") << what;
    }

private:
    std::string number_;
    double tolerance_;
    double error_ = 0;
    bool compared_ = false;
};

}  // namespace hpcai::tests
