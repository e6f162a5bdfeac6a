// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/comm/collectives.hpp>

namespace hpcai::comm {
namespace {

TEST(Collectives, GatherDifferentNumbersOfValuesInTheOrderOfTheRanks) {
    run_as_threads(3, [](Communicator& ranks) {
        const auto count = static_cast<std::size_t>(ranks.rank());
        const auto all = gather(ranks, std::vector<int>(count, ranks.rank()));
        EXPECT_EQ(all, ranks.rank() == 0 ? (std::vector{1, 2, 2}) : std::vector<int>());
    });
}

TEST(Collectives, GatherStringsOfAnyLength) {
    run_as_threads(3, [](Communicator& ranks) {
        const std::vector<std::string> all{"", std::string(300, 'x'), "y"};
        const std::string& mine = all[static_cast<std::size_t>(ranks.rank())];
        EXPECT_EQ(all_gather_strings(ranks, mine), all);
        EXPECT_EQ(gather_strings(ranks, mine),
                  ranks.rank() == 0 ? all : std::vector<std::string>());
        for (const std::string& same : {std::string(), std::string(300, 'x')}) {
            EXPECT_EQ(all_gather_strings(ranks, same), std::vector<std::string>(3, same));
        }
    });
}

TEST(Collectives, BroadcastValuesWhoseNumberOtherRanksDoNotKnow) {
    run_as_threads(3, [](Communicator& ranks) {
        const auto count = static_cast<std::size_t>(ranks.rank());
        EXPECT_EQ(broadcast(ranks, std::vector<int>(count, 7), 2), (std::vector{7, 7}));
        EXPECT_EQ(broadcast(ranks, std::string(count + 1, 'a')), "a");
    });
}

}  // namespace
}  // namespace hpcai::comm
