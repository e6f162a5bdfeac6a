// SPDX-License-Identifier: Apache-2.0
#include "speed/operation_bench.hpp"

#include <chrono>
#include <fstream>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

namespace hpcai::speed {
namespace {

class Warnings final : public Logger {
public:
    std::vector<std::string> lines;
    void write(Severity, std::string_view message) override { lines.emplace_back(message); }
};

/// Occupies the core `core` for 50 ms.
void occupy(int core) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    ASSERT_EQ(::sched_setaffinity(0, sizeof cores, &cores), 0);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    while (std::chrono::steady_clock::now() < end) continue;
}

TEST(CoreWait, IsLoggedWhereThreadsShareACore) {
    long long running = 0;
    if (!(std::ifstream("/proc/thread-self/schedstat") >> running) || running == 0) {
        GTEST_SKIP() << "the system does not count it";
    }
    Warnings log;
    const int core = ::sched_getcpu();
    std::thread other([&] { occupy(core); });
    std::thread measured([&] {
        const CoreWait wait;
        occupy(core);
        wait.log(log);
        other.join();
        const CoreWait none;
        none.log(log);
    });
    measured.join();
    EXPECT_THAT(log.lines, testing::ElementsAre(testing::MatchesRegex(
                               "other threads used the core for [0-9]+ % of the time; .*")));
}

}  // namespace
}  // namespace hpcai::speed
