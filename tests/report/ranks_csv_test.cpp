// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/report/csv.hpp>

namespace hpcai::report {
namespace {

const char* const kHeader =
    "group_rank,world_rank,host,steps,median_step_seconds,p99_step_seconds,longest_step_seconds,"
    "input_wait_seconds,forward_seconds,backward_seconds,communication_seconds,optimizer_seconds,"
    "other_seconds,overlapped_communication_seconds,"
    "peak_memory_bytes\n";

std::vector<RankRecord> two_ranks() {
    std::vector<RankRecord> ranks(2);
    ranks[0] = {0,    2,  "node1", 8, 0.5, 0.75, 1.0 / 3, {0.001, 0.02, 0.04, 0.003, 0.004, 0},
                0.25, 4e9};
    ranks[1] = {1, 3, "node2", 8, 0.5, 0.75, 1, {}, std::nan("")};
    return ranks;
}

std::string refusal_of_ranks(const std::string& text) {
    try {
        ranks_from_csv(text, "r.csv");
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::data);
        return error.what();
    }
    return "nothing was thrown";
}

TEST(RanksCsv, LeavesCellsEmptyWhereNothingWasMeasured) {
    EXPECT_EQ(ranks_to_csv(two_ranks()),
              kHeader + std::string("0,2,node1,8,0.5,0.75,0.3333333333333333,0.001,0.02,0.04,0.003,"
                                    "0.004,0,0.25,4000000000\n"
                                    "1,3,node2,8,0.5,0.75,1,,,,,,,,\n"));
}

TEST(RanksCsv, BringsTheSameNumbersBack) {
    const std::vector<RankRecord> ranks = ranks_from_csv(ranks_to_csv(two_ranks()));
    ASSERT_EQ(ranks.size(), 2U);
    EXPECT_EQ(ranks[0].longest_step_seconds, 1.0 / 3);
    EXPECT_EQ(ranks[0].host, "node1");
    EXPECT_TRUE(std::isnan(ranks[1].overlapped_communication));
    EXPECT_EQ(ranks_to_csv(ranks), ranks_to_csv(two_ranks()));
}

TEST(RanksCsv, DoesNotLetAHostAddCells) {
    std::vector<RankRecord> ranks = two_ranks();
    ranks[0].host = "a,b\n\"c\xff";
    EXPECT_EQ(ranks_from_csv(ranks_to_csv(ranks))[0].host, "a_b__c_");
}

TEST(RanksCsv, NamesTheLineAndColumnThatIsWrong) {
    const std::string line = ",3,node2,8,0.5,0.75,1,,,,,,,,\n";
    EXPECT_EQ(refusal_of_ranks(kHeader + ("1" + line)),
              "r.csv:2: group_rank is \"1\"; it must be 0");
    EXPECT_EQ(refusal_of_ranks(kHeader + std::string("0,3,,8,0.5,0.75,1,,,,,,,,\n")),
              "r.csv:2: host is \"\"; it must be a name without spaces");
    EXPECT_EQ(refusal_of_ranks(kHeader + std::string("0,3,n,8,0.5,-0.75,1,,,,,,,,\n")),
              "r.csv:2: p99_step_seconds is \"-0.75\"; it must be 0 or more");
    EXPECT_EQ(refusal_of_ranks(kHeader + std::string("0,3,n,8,0.5,0.75,1,x,,,,,,,\n")),
              "r.csv:2: input_wait_seconds is \"x\"; it must be a number or nothing");
    EXPECT_EQ(refusal_of_ranks(kHeader + std::string("0,3,n,8,0.5,0.75,1,,,,,,,,,\n")),
              "r.csv:2: more cells than columns");
    EXPECT_NE(refusal_of_ranks("rank\n").find("r.csv:1: the header is \"rank\""),
              std::string::npos);
    EXPECT_NE(refusal_of_ranks("").find("r.csv: empty"), std::string::npos);
}

}  // namespace
}  // namespace hpcai::report
