// SPDX-License-Identifier: Apache-2.0
#include "data/prefetcher.hpp"

#include <atomic>
#include <future>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/error.hpp>

namespace hpcai::data {
namespace {

class PrefetcherWithThreads : public testing::TestWithParam<int> {};

TEST_P(PrefetcherWithThreads, HandsOutEveryRowOnceInOrder) {
    constexpr int kSlots = 3, kRows = 5;
    std::vector<std::vector<std::int64_t>> memory(kSlots, std::vector<std::int64_t>(kRows, -1));
    Prefetcher prefetcher(kSlots, GetParam(), [&](int slot, std::int64_t batch, std::int64_t row) {
        memory[static_cast<std::size_t>(slot)][static_cast<std::size_t>(row)] = batch * 100 + row;
    });
    for (int pass = 0; pass < 2; ++pass) {
        prefetcher.cancel();
        prefetcher.begin(40, kRows);
        for (std::int64_t batch = 0; batch < 40; ++batch) {
            const auto& rows = memory[static_cast<std::size_t>(prefetcher.next())];
            for (std::int64_t row = 0; row < kRows; ++row) {
                ASSERT_EQ(rows[static_cast<std::size_t>(row)], batch * 100 + row);
            }
        }
        EXPECT_THROW(prefetcher.next(), Error);
    }
}

TEST_P(PrefetcherWithThreads, NeverRunsFurtherAheadThanItsSlots) {
    std::atomic<std::int64_t> consumed{0};
    std::atomic<bool> too_far{false};
    Prefetcher prefetcher(3, GetParam(), [&](int, std::int64_t batch, std::int64_t) {
        if (batch >= consumed + 3) too_far = true;
    });
    prefetcher.begin(30, 2);
    for (int batch = 0; batch < 30; ++batch) {
        consumed = batch;  // next() frees the slot of the previous batch
        prefetcher.next();
    }
    EXPECT_FALSE(too_far);
}

TEST_P(PrefetcherWithThreads, CountsTheTimeOfCallsThatFindTheirBatchReady) {
    std::promise<void> last_begun;
    Prefetcher prefetcher(3, GetParam(), [&](int, std::int64_t batch, std::int64_t) {
        if (batch == 2) last_begun.set_value();
    });
    prefetcher.begin(3, 1);
    EXPECT_EQ(prefetcher.wait_seconds(), 0);
    last_begun.get_future().wait();  // with one thread, the earlier batches are ready
    const Stopwatch watch;
    prefetcher.next();
    EXPECT_GT(prefetcher.wait_seconds(), 0);
    EXPECT_LE(prefetcher.wait_seconds(), watch.seconds());
}

TEST_P(PrefetcherWithThreads, BeginsAfterTheSkippedBatches) {
    std::vector<std::atomic<int>> filled(7);
    Prefetcher prefetcher(3, GetParam(), [&](int slot, std::int64_t batch, std::int64_t) {
        EXPECT_EQ(slot, batch % 3);
        ++filled[static_cast<std::size_t>(batch)];
    });
    prefetcher.begin(7, 2, 4);
    EXPECT_EQ(prefetcher.batches(), 7);
    for (int batch = 4; batch < 7; ++batch) EXPECT_EQ(prefetcher.next(), batch % 3);
    EXPECT_THROW(prefetcher.next(), Error);
    for (std::size_t batch = 0; batch < filled.size(); ++batch) {
        EXPECT_EQ(filled[batch], batch < 4 ? 0 : 2) << batch;
    }
    prefetcher.cancel();
    prefetcher.begin(7, 2, 7);
    EXPECT_THROW(prefetcher.next(), Error);
}

TEST_P(PrefetcherWithThreads, RethrowsTheFirstFailingRowOfABatchAndContinues) {
    Prefetcher prefetcher(2, GetParam(), [](int, std::int64_t batch, std::int64_t row) {
        if (batch == 1 && row >= 2) throw std::runtime_error("row " + std::to_string(row));
    });
    prefetcher.begin(3, 6);
    prefetcher.next();
    try {
        prefetcher.next();
        FAIL() << "no exception";
    } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "row 2");
    }
    EXPECT_NO_THROW(prefetcher.next());
}

TEST_P(PrefetcherWithThreads, CompletesEachBatchOnceAfterItsRows) {
    std::vector<std::atomic<int>> rows(20), completed(20);
    Prefetcher prefetcher(
        3, GetParam(),
        [&](int, std::int64_t batch, std::int64_t) { ++rows[static_cast<std::size_t>(batch)]; },
        [&](int slot, std::int64_t batch) {
            EXPECT_EQ(slot, batch % 3);
            EXPECT_EQ(rows[static_cast<std::size_t>(batch)], 5);
            ++completed[static_cast<std::size_t>(batch)];
        });
    prefetcher.begin(20, 5);
    for (std::size_t batch = 0; batch < 20; ++batch) {
        prefetcher.next();
        EXPECT_EQ(completed[batch], 1);
    }
}

TEST_P(PrefetcherWithThreads, RethrowsWhatCompletingABatchThrowsUnlessARowFailed) {
    Prefetcher prefetcher(
        2, GetParam(),
        [](int, std::int64_t batch, std::int64_t) {
            if (batch == 0) throw std::runtime_error("row");
        },
        [](int, std::int64_t batch) {
            throw std::runtime_error("complete " + std::to_string(batch));
        });
    prefetcher.begin(2, 3);
    for (const char* expected : {"row", "complete 1"}) {
        try {
            prefetcher.next();
            FAIL() << "no exception";
        } catch (const std::runtime_error& error) {
            EXPECT_STREQ(error.what(), expected);
        }
    }
}

TEST_P(PrefetcherWithThreads, EndsCleanlyInEveryState) {
    const auto idle = [](int, std::int64_t, std::int64_t) {};
    { Prefetcher never_begun(2, GetParam(), idle); }
    {
        Prefetcher half_way(2, GetParam(), idle);
        half_way.begin(1000, 8);
        half_way.next();
    }
    {
        Prefetcher abandoned(4, GetParam(), idle);
        abandoned.begin(1000, 8);
        abandoned.cancel();
        EXPECT_EQ(abandoned.batches(), 0);
        abandoned.begin(0, 8);
        EXPECT_THROW(abandoned.next(), Error);
    }
    {
        Prefetcher failing(2, GetParam(), [](int, std::int64_t, std::int64_t) {
            throw std::runtime_error("always");
        });
        failing.begin(10, 4);
    }
}

INSTANTIATE_TEST_SUITE_P(Threads, PrefetcherWithThreads, testing::Values(1, 2, 4));

}  // namespace
}  // namespace hpcai::data
