// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <csignal>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/error.hpp>
#include <hpcai/training/watchdog.hpp>

namespace hpcai::training {
namespace {

void sleep_seconds(double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

struct Watched {
    std::atomic<int> expiries = 0;
    std::string reason;
    Watchdog watchdog;

    explicit Watched(const StepTimeout& timeout)
        : watchdog({timeout, 30,
                    [this](const std::string& why) {
                        reason = why;
                        ++expiries;
                    },
                    [] { return false; }}) {}

    bool has_expired_within(double seconds) {
        const Stopwatch watch;
        while (expiries == 0 && watch.seconds() < seconds) sleep_seconds(0.01);
        return expiries > 0;
    }
};

TEST(StepTimeout, OfTheFirstStepIsOfItsOwn) {
    StepTimeout timeout(900, 0);
    EXPECT_EQ(timeout.seconds(), 900);
    timeout.add_step(400);
    EXPECT_EQ(timeout.seconds(), 900)
        << "the first step also tunes, so it shows nothing about the others";
}

TEST(StepTimeout, IsTenTimesTheLongestStepAndNoLessThanTheFirstOrFiveMinutes) {
    StepTimeout timeout(900, 0);
    for (const double seconds : {350.0, 0.5, 0.25}) timeout.add_step(seconds);
    EXPECT_EQ(timeout.seconds(), 350);
    timeout.add_step(40);
    timeout.add_step(7);
    EXPECT_EQ(timeout.seconds(), 400);
    StepTimeout quick(900, 0);
    for (const double seconds : {3.0, 0.5}) quick.add_step(seconds);
    EXPECT_EQ(quick.seconds(), 300);
}

TEST(StepTimeout, IsThatOfAFirstStepAgainForAnotherModel) {
    for (const double later : {0.0, 5.0}) {
        StepTimeout timeout(900, later);
        for (const double seconds : {3.0, 0.5}) timeout.add_step(seconds);
        EXPECT_LT(timeout.seconds(), 900);
        timeout.restart();
        EXPECT_EQ(timeout.seconds(), 900);
        timeout.add_step(3);
        EXPECT_EQ(timeout.seconds(), later > 0 ? later : 900);
    }
}

TEST(StepTimeout, ThatIsGivenIsNotLearned) {
    StepTimeout timeout(30, 5);
    EXPECT_EQ(timeout.seconds(), 30);
    for (const double seconds : {400.0, 100.0}) timeout.add_step(seconds);
    EXPECT_EQ(timeout.seconds(), 5);
}

TEST(Watchdog, ThatHasNotBegunReportsNothing) {
    Watched watched(StepTimeout(0.05, 0.05));
    EXPECT_FALSE(watched.has_expired_within(0.2));
    EXPECT_NO_THROW(watched.watchdog.check());
}

TEST(Watchdog, GivesTheFirstStepOfEveryModelItsOwnTime) {
    Watched watched(StepTimeout(60, 0.05));
    for (int model = 0; model < 2; ++model) {
        watched.watchdog.begin();
        EXPECT_FALSE(watched.has_expired_within(0.2)) << model;
        watched.watchdog.step_done();
        watched.watchdog.allow(60);
    }
}

TEST(Watchdog, IsSilentWhileStepsAreDone) {
    Watched watched(StepTimeout(60, 60));
    watched.watchdog.begin();
    for (int step = 0; step < 100; ++step) watched.watchdog.step_done();
    EXPECT_NO_THROW(watched.watchdog.check());
    EXPECT_EQ(watched.expiries, 0);
}

TEST(Watchdog, ReportsOnceThatNoStepWasDoneAndEachLaterCallThrows) {
    Watched watched(StepTimeout(0.1, 0.1));
    watched.watchdog.begin();
    ASSERT_TRUE(watched.has_expired_within(60));
    sleep_seconds(0.3);
    EXPECT_EQ(watched.expiries, 1);
    EXPECT_TRUE(watched.reason.starts_with("no step was done for ")) << watched.reason;
    for (const auto& call : std::vector<std::function<void()>>{
             [&] { watched.watchdog.check(); }, [&] { watched.watchdog.step_done(); },
             [&] { watched.watchdog.resume(); }}) {
        try {
            call();
            ADD_FAILURE() << "nothing was thrown";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::watchdog);
            EXPECT_EQ(error.what(), watched.reason);
        }
    }
    EXPECT_GE(watched.watchdog.silent_seconds(), 0.1);
}

TEST(Watchdog, GivesAnotherLimitToTheStepsAfterTheFirst) {
    Watched watched(StepTimeout(3600, 0.1));
    watched.watchdog.begin();
    EXPECT_FALSE(watched.has_expired_within(0.3));
    watched.watchdog.step_done();
    EXPECT_TRUE(watched.has_expired_within(60));
}

TEST(Watchdog, AllowsWhatIsNoStepTheTimeThatItIsGiven) {
    Watched watched(StepTimeout(0.1, 0.1));
    watched.watchdog.begin();
    watched.watchdog.allow(3600);
    EXPECT_FALSE(watched.has_expired_within(0.3));
    watched.watchdog.resume();
    EXPECT_TRUE(watched.has_expired_within(60));
}

TEST(Watchdog, ThatIsRequestedToStopReportsNothing) {
    Watched watched(StepTimeout(0.1, 0.1));
    watched.watchdog.begin();
    watched.watchdog.end();
    EXPECT_FALSE(watched.has_expired_within(0.3));
    watched.watchdog.allow(1);
    EXPECT_FALSE(watched.has_expired_within(0.2)) << "this starts nothing";
}

/// Exits with 0 if the process was suspended and still learned a step time of one or two seconds.
void suspend(int seconds) {
    Watchdog watchdog({StepTimeout(3600, 0), 30, [](const std::string&) {}});
    watchdog.begin();
    watchdog.step_done();
    const pid_t self = getpid();
    if (fork() == 0) {
        sleep_seconds(seconds);
        kill(self, SIGCONT);
        std::_Exit(0);
    }
    raise(SIGSTOP);
    watchdog.step_done();
    std::_Exit(watchdog.longest_seconds() < 3 ? 0 : 1);
}

TEST(WatchdogDeathTest, DoesNotLearnTheTimeInWhichTheProcessWasStopped) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(suspend(7), testing::ExitedWithCode(0), "");
}

/// A process whose thread completes no step. It notices the timeout if `notices`.
void hang(std::function<bool()> may_end, bool notices) {
    std::atomic<bool> has_expired = false;
    Watchdog watchdog({StepTimeout(0.05, 0.05), notices ? 3 : 0.5,
                       [&](const std::string&) { has_expired = true; }, std::move(may_end),
                       "rank 1 of group 7"});
    watchdog.begin();
    while (!has_expired) sleep_seconds(0.01);
    if (notices) watchdog.end();
    sleep_seconds(notices ? 5 : 600);
    std::_Exit(0);
}

TEST(WatchdogDeathTest, EndsAProcessThatDoesNotNotice) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(hang({}, false), testing::ExitedWithCode(6),
                "after a step timeout, rank 1 of group 7 did not return within");
}

TEST(WatchdogDeathTest, EndsItWhenNoOtherRankNeedsIt) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    int asked = 0;
    EXPECT_EXIT(hang([&asked] { return ++asked == 2; }, false), testing::ExitedWithCode(6),
                "after a step timeout, rank 1 of group 7 did not return within");
}

TEST(WatchdogDeathTest, DoesNotEndOneThatHasNoticed) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(hang({}, true), testing::ExitedWithCode(0), "");
    EXPECT_EXIT(hang([] { return true; }, true), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace hpcai::training
