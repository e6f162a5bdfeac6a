// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/meters/sampler.hpp>

namespace hpcai::meters {
namespace {

Counter counter(std::function<double()> read) {
    return {"net:eth0:sent", "B", "", std::move(read)};
}

TEST(CounterLog, KeepsTheFirstAndTheLastAndFewBetween) {
    for (const int readings : {1, 2, 15, 16, 17, 100, 12345}) {
        double value = 0;
        CounterLog log("node1", {counter([&] { return value; })});
        for (int reading = 0; reading < readings; ++reading) {
            value = 10.0 * reading;
            log.sample(1000.0 + reading);
        }
        const std::vector<CounterRecord> records = log.records();
        ASSERT_EQ(records.size(), 1U);
        const auto& kept = records[0].readings;
        ASSERT_LE(kept.size(), CounterLog::kMaxReadings) << readings;
        ASSERT_GE(kept.size(), std::min<std::size_t>(static_cast<std::size_t>(readings), 8));
        EXPECT_EQ(kept.front(), (CounterReading{1000, 0}));
        EXPECT_EQ(kept.back(), (CounterReading{999.0 + readings, 10.0 * (readings - 1)}));
        double widest = 0;
        for (std::size_t index = 1; index < kept.size(); ++index) {
            EXPECT_EQ(kept[index].value, 10 * (kept[index].utc_seconds - 1000));
            widest = std::max(widest, kept[index].utc_seconds - kept[index - 1].utc_seconds);
        }
        EXPECT_LE(widest, std::max(1.0, readings / 7.0)) << readings;
    }
}

TEST(CounterLog, NamesHostAndCounterAndItsUnit) {
    CounterLog log("node1", {counter([] { return 5.0; })});
    log.sample(7);
    const CounterRecord expected{"node1", "net:eth0:sent", "B", "", {{7, 5}}};
    EXPECT_EQ(log.records(), std::vector<CounterRecord>{expected});
}

TEST(CounterLog, ReportsWhyACounterStoppedWithoutItsReadings) {
    double value = 8;
    int calls = 0;
    CounterLog log("node1", {counter([&] { return value; }),
                             counter([&]() -> double {
                                 if (++calls == 3) throw Error(ExitCode::data, "eth0: is gone");
                                 return 1;
                             }),
                             {"rapl", "J", "there is none"}});
    log.sample(1);
    value = 9;
    log.sample(2);
    value = 3;
    log.sample(3);
    value = 10;
    log.sample(4);
    const std::vector<CounterRecord> records = log.records();
    ASSERT_EQ(records.size(), 3U);
    EXPECT_EQ(records[0].failure, "it decreased from 9 to 3");
    EXPECT_EQ(records[1].failure, "eth0: is gone");
    EXPECT_EQ(calls, 3);
    EXPECT_EQ(records[2].failure, "there is none");
    for (const CounterRecord& one : records) EXPECT_TRUE(one.readings.empty()) << one.failure;
}

TEST(Sampler, ReadsAtTheBeginningPeriodicallyAndAtTheEnd) {
    std::mutex mutex;
    std::condition_variable changed;
    int reads = 0;
    const auto read = [&] {
        const std::lock_guard lock(mutex);
        changed.notify_all();
        return static_cast<double>(++reads);
    };
    Sampler sampler(CounterLog("node1", {counter(read)}), 1e-3);
    {
        std::unique_lock lock(mutex);
        EXPECT_GE(reads, 1);
        changed.wait(lock, [&] { return reads >= 5; });
    }
    const std::vector<CounterRecord> records = sampler.finish(3600);
    ASSERT_EQ(records.size(), 1U);
    EXPECT_EQ(records[0].readings.front().value, 1);
    EXPECT_EQ(records[0].readings.back().value, reads);
    EXPECT_GT(records[0].readings.back().utc_seconds, records[0].readings.front().utc_seconds);
}

TEST(Sampler, StopsItsThreadIfFinishIsNotCalled) {
    int reads = 0;
    {
        const Sampler sampler(CounterLog("node1", {counter([&] {
                                             ++reads;
                                             return 0.0;
                                         })}),
                              3600);
    }
    EXPECT_EQ(reads, 2);
}

TEST(Sampler, ReportsAFailureForCountersThatHang) {
    const auto answer = std::make_shared<std::promise<void>>();
    const auto reads = std::make_shared<std::atomic<int>>(0);
    const auto hang = [reads, wait = answer->get_future().share()] {
        if (++*reads > 1) wait.wait();
        return 0.0;
    };
    Sampler sampler(CounterLog("node1", {counter(hang)}), 1e-3);
    const std::vector<CounterRecord> records = sampler.finish(0.05);
    answer->set_value();
    ASSERT_EQ(records.size(), 1U);
    EXPECT_EQ(records[0].host, "node1");
    EXPECT_EQ(records[0].failure, "it was not read within 0.05 s");
    EXPECT_TRUE(records[0].readings.empty());
}

}  // namespace
}  // namespace hpcai::meters
