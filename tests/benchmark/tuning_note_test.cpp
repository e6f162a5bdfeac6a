// SPDX-License-Identifier: Apache-2.0
#include "benchmark/tuning_note.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpcai::benchmark {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Lines final : public Logger {
public:
    void write(Severity severity, std::string_view message) override {
        EXPECT_EQ(severity, Severity::info);
        lines.emplace_back(message);
    }
    std::vector<std::string> lines;
};

TEST(TuningNote, SaysThatTimingBeginsAndWhatItTook) {
    Lines log;
    const TuningNote note(device::Tuning{5, 1.0}, log);
    ASSERT_EQ(log.lines.size(), 1U);
    EXPECT_THAT(log.lines[0], AllOf(HasSubstr("device.autotune: "), HasSubstr("take minutes")));
    note.finish(device::Tuning{164, 91.26});
    ASSERT_EQ(log.lines.size(), 2U);
    EXPECT_EQ(log.lines[1],
              "device.autotune: timed 159 convolutions and gradients of them in 90.3 s");
}

TEST(TuningNote, SaysWhereNothingHadToBeTimed) {
    Lines log;
    TuningNote(device::Tuning{5, 1.0}, log).finish(device::Tuning{5, 1.0});
    ASSERT_EQ(log.lines.size(), 2U);
    EXPECT_EQ(log.lines[1], "device.autotune: the fastest ways were known");
}

TEST(TuningNote, SaysNothingOfDevicesThatTimeNothing) {
    Lines log;
    const TuningNote note(std::nullopt, log);
    note.finish(std::nullopt);
    EXPECT_TRUE(log.lines.empty());
}

}  // namespace
}  // namespace hpcai::benchmark
