// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hpcai/group/autotune_log.hpp>

namespace hpcai::group {
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

TEST(AutotuneLog, ReportsThatTimingBeginsAndWhatItTook) {
    Lines log;
    const AutotuneLog autotune(device::Tuning{5, 1.0}, log);
    ASSERT_EQ(log.lines.size(), 1U);
    EXPECT_THAT(log.lines[0], AllOf(HasSubstr("device.autotune: "), HasSubstr("take minutes")));
    autotune.finish(device::Tuning{164, 91.26});
    ASSERT_EQ(log.lines.size(), 2U);
    EXPECT_EQ(log.lines[1], "device.autotune: timed 159 passes of convolutions in 90.3 s");
}

TEST(AutotuneLog, ReportsWhereNothingHadToBeTimed) {
    Lines log;
    AutotuneLog(device::Tuning{5, 1.0}, log).finish(device::Tuning{5, 1.0});
    ASSERT_EQ(log.lines.size(), 2U);
    EXPECT_EQ(log.lines[1], "device.autotune: no convolution had to be timed");
}

TEST(AutotuneLog, LogsNothingForDevicesThatTimeNothing) {
    Lines log;
    const AutotuneLog autotune(std::nullopt, log);
    autotune.finish(std::nullopt);
    EXPECT_TRUE(log.lines.empty());
}

}  // namespace
}  // namespace hpcai::group
