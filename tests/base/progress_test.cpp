// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <future>
#include <limits>
#include <sstream>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hpcai/base/progress.hpp>

namespace hpcai {
namespace {

Progress at_step(std::int64_t step) {
    return {.step = step,
            .steps = 100,
            .epoch = 2,
            .epochs = 5,
            .loss = 2.34567,
            .images_per_second = 512.4,
            .seconds_left = 192};
}

TEST(Progress, RendersAsOneLine) {
    EXPECT_EQ(render(at_step(20)),
              "epoch 2/5  step 20/100  loss 2.3457  512 images/s  3 min 12 s left");
    Progress series = at_step(20);
    series.is_of_all_runs = true;
    EXPECT_THAT(render(series), testing::EndsWith("  3 min 12 s left in total"));
    EXPECT_EQ(render(at_step(100)), "epoch 2/5  step 100/100  loss 2.3457  512 images/s");
    Progress search = at_step(100);
    search.trial = 7;
    EXPECT_THAT(render(search), testing::StartsWith("trial 7  epoch 2/5  step 100/100"));
    Progress unread = at_step(3);
    unread.loss = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(render(unread), "epoch 2/5  step 3/100 under way");
}

TEST(Progress, NamesTheSlowestGroup) {
    Progress progress = at_step(20);
    progress.slowest_group = 3;
    EXPECT_THAT(render(progress), testing::EndsWith("3 min 12 s left  group 3 is slowest"));
}

TEST(Progress, OmitsWhatIsNotKnown) {
    Progress progress = at_step(1);
    progress.epoch = 0;
    progress.seconds_left = -1;
    progress.images_per_second = 7.25;
    EXPECT_EQ(render(progress), "step 1/100  loss 2.3457  7.2 images/s");
}

TEST(ProgressLine, InABatchLogDoublesTheIntervalAndPrintsTheLastStep) {
    std::ostringstream out;
    ProgressLine line(out, {.live = false, .max_log_seconds = 10, .prefix = "group 0  "});
    for (int step = 1; step <= 100; ++step)
        line.update(at_step(step), step * 0.3);  // 30 s in total
    line.finish();
    const std::string text = out.str();
    // At 0.3, 1.5, 3.6, 7.8, 15.9, 26.1 and 30 s.
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 7);
    EXPECT_TRUE(text.starts_with("group 0  epoch 2/5  step 1/100"));
    EXPECT_EQ(text.find('\r'), std::string::npos);
    EXPECT_NE(text.find("step 1/100"), std::string::npos);
    EXPECT_NE(text.find("step 100/100"), std::string::npos);
}

TEST(ProgressLine, InABatchLogBreaksALongLineBetweenTwoFacts) {
    std::ostringstream out;
    ProgressLine line(out, {.live = false, .prefix = "run 1 of 3  group 0  "});
    Progress progress = at_step(20);
    progress.slowest_group = 1;
    line.update(progress, 0);
    EXPECT_EQ(out.str(),
              "run 1 of 3  group 0  epoch 2/5  step 20/100  loss 2.3457  512 images/s\n"
              "    3 min 12 s left  group 1 is slowest\n");
}

/// A stream like std::cerr, which writes after each insertion.
class Writes : public std::stringbuf {
public:
    std::vector<std::string> written;

protected:
    int sync() override {
        if (!str().empty()) written.push_back(str());
        str("");
        return 0;
    }
};

TEST(ProgressLine, InABatchLogWritesWholeLines) {
    Writes writes;
    std::ostream out(&writes);
    out << std::unitbuf;
    ProgressLine line(out, {.live = false});
    line.update(at_step(1), 0);
    EXPECT_THAT(writes.written, testing::ElementsAre(render(at_step(1)) + "\n"));
}

TEST(ProgressLine, CallsTheGivenPrinterInstead) {
    std::ostringstream out;
    std::vector<std::int64_t> steps;
    ProgressLine line(out, {.max_log_seconds = 10, .print = [&](const Progress& progress) {
                                steps.push_back(progress.step);
                            }});
    for (const int step : {1, 2, 100}) line.update(at_step(step), step * 0.01);
    line.finish();
    EXPECT_EQ(steps, (std::vector<std::int64_t>{1, 100}));
    EXPECT_EQ(out.str(), "");
}

TEST(ProgressLine, OnATerminalRewritesOneLineAndErasesWhatWasLonger) {
    std::ostringstream out;
    ProgressLine line(out, {.live = true, .live_interval_seconds = 1});
    line.update(at_step(99), 0);
    line.update(at_step(99), 0.5);  // too early to show
    line.update(at_step(100), 0.6);
    line.finish();
    line.finish();
    const std::string first = render(at_step(99)), last = render(at_step(100));
    const std::string erased(first.size() - last.size(), ' ');
    EXPECT_EQ(out.str(), fmt::format("\r{}\r{}{}\n", first, last, erased));
}

TEST(ProgressLine, NeverReachesTheEdgeOfTheTerminal) {
    std::ostringstream out;
    ProgressLine line(out, {.live = true, .terminal_columns = 20});
    line.update(at_step(5), 0);
    EXPECT_EQ(out.str().substr(1), render(at_step(5)).substr(0, 19));
}

TEST(LateLine, IsPrintedOnlyAfterItsDelay) {
    struct Buffer : std::stringbuf {
        std::promise<void> flushed;
        int sync() override {
            flushed.set_value();
            return 0;
        }
    } slow, quick;
    std::ostream slow_out(&slow), quick_out(&quick);
    const LateLine late(slow_out, "a long check\n", 0.001);
    { const LateLine unprinted(quick_out, "a short check\n", 3600); }
    const auto printed = slow.flushed.get_future().wait_for(std::chrono::seconds(10));
    ASSERT_EQ(printed, std::future_status::ready);
    EXPECT_EQ(slow.str(), "a long check\n");
    EXPECT_EQ(quick.str(), "");
}

}  // namespace
}  // namespace hpcai
