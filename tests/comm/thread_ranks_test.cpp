// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/comm/collectives.hpp>

namespace hpcai::comm {
namespace {

TEST(ThreadRanks, SumInTheOrderOfTheRanks) {
    // In another order the ones would be lost in the sum with the large number.
    const std::array<float, 3> mine{1.0F, 1.0F, 0x1p24F};
    for (int round = 0; round < 50; ++round) {
        run_as_threads(3, [&](Communicator& ranks) {
            std::vector<float> sum(5, mine[static_cast<std::size_t>(ranks.rank())]);
            ranks.all_reduce_sum(sum);
            EXPECT_EQ(sum, std::vector<float>(5, (1.0F + 1.0F) + 0x1p24F));
            std::array<std::int64_t, 1> count{ranks.rank() + 1};
            ranks.all_reduce_sum(count);
            EXPECT_EQ(count[0], 6);
            std::array<double, 2> most{static_cast<double>(ranks.rank()), -1.0 - ranks.rank()};
            ranks.all_reduce_max(most);
            EXPECT_EQ(most, (std::array{2.0, -1.0}));
        });
    }
}

TEST(ThreadRanks, ReduceToTheRootAndLeaveTheOthersAlone) {
    run_as_threads(4, [](Communicator& ranks) {
        std::vector<float> values{static_cast<float>(ranks.rank()), 1};
        ranks.reduce_sum(values, 2);
        const std::vector<float> untouched{static_cast<float>(ranks.rank()), 1};
        EXPECT_EQ(values, ranks.rank() == 2 ? (std::vector<float>{6, 4}) : untouched);
    });
}

TEST(ThreadRanks, GatherAndBroadcast) {
    run_as_threads(3, [](Communicator& ranks) {
        std::vector<int> all(3);
        const int mine = 10 * ranks.rank();
        ranks.all_gather(std::as_bytes(std::span(&mine, 1)),
                         std::as_writable_bytes(std::span(all)));
        EXPECT_EQ(all, (std::vector{0, 10, 20}));
        ranks.broadcast(std::as_writable_bytes(std::span(all)), 1);
    });
}

TEST(ThreadRanks, SendMessagesThatMeetInOrder) {
    run_as_threads(2, [](Communicator& ranks) {
        const int other = 1 - ranks.rank();
        std::array<char, 2> out{'a', static_cast<char>('0' + ranks.rank())};
        ranks.send(std::as_bytes(std::span(out)), other, 7);
        out[0] = 'b';
        std::array<char, 2> first{}, second{};
        const Outgoing sent{other, std::as_bytes(std::span(out))};
        const Incoming awaited{other, std::as_writable_bytes(std::span(second))};
        ranks.receive(std::as_writable_bytes(std::span(first)), other, 7);
        const auto request = ranks.start_exchange({&sent, 1}, {&awaited, 1}, 8);
        ranks.wait_until([&] { return request->test(); });
        const auto digit = static_cast<char>('0' + other);
        EXPECT_EQ(first, (std::array{'a', digit}));
        EXPECT_EQ(second, (std::array{'b', digit}));
    });
}

TEST(ThreadRanks, SplitByColorAndKey) {
    run_as_threads(4, [](Communicator& ranks) {
        const auto part = ranks.split(ranks.rank() % 2, -ranks.rank());
        ASSERT_EQ(part->size(), 2);
        EXPECT_EQ(part->rank(), ranks.rank() < 2 ? 1 : 0);
        std::array<std::int64_t, 1> sum{ranks.rank()};
        part->all_reduce_sum(sum);
        EXPECT_EQ(sum[0], ranks.rank() % 2 == 0 ? 2 : 4);
    });
}

TEST(ThreadRanks, EndTogetherWhereOneFails) {
    const auto fail_on = [](int failing) {
        run_as_threads(3, [&](Communicator& ranks) {
            if (ranks.rank() == failing) throw Error(ExitCode::data, "a damaged file");
            ranks.barrier();
            ranks.barrier();
        });
    };
    for (const int rank : {0, 1, 2}) {
        try {
            fail_on(rank);
            FAIL() << "must throw";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::data);
            EXPECT_STREQ(error.what(), "a damaged file");
        }
    }
    EXPECT_THROW(run_as_threads(2,
                                [](Communicator& ranks) {
                                    collective_try(ranks, [&] {
                                        require(ranks.rank() == 0, ExitCode::data, "rank 1 cannot");
                                    });
                                }),
                 Error);
}

TEST(ThreadRanks, RejectSizesThatDiffer) {
    EXPECT_THROW(
        run_as_threads(2,
                       [](Communicator& ranks) {
                           std::vector<float> values(static_cast<std::size_t>(ranks.rank()) + 1);
                           ranks.all_reduce_sum(values);
                       }),
        Error);
}

}  // namespace
}  // namespace hpcai::comm
