// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/report/record_text.hpp>

namespace hpcai::report {
namespace {

FlightRecord rank_at(int group_rank, std::int64_t steps_done, std::int64_t all_reduces_started,
                     const std::string& what) {
    FlightRecord record;
    record.group = 1;
    record.group_rank = group_rank;
    record.world_rank = 4 + group_rank;
    record.host = "node02";
    record.process = 4711 + group_rank;
    record.reason = "no step was done for 60 s";
    record.answers = true;
    record.steps_done = steps_done;
    record.all_reduces_started = all_reduces_started;
    record.silent_seconds = 63;
    record.events = {{steps_done, "input_wait", 0, 1.5, {1.75, ""}},
                     {steps_done, what, 0, 1.75, {std::nullopt, "has not ended"}}};
    return record;
}

TEST(FlightJson, GivesBackWhatWasWritten) {
    const FlightRecord record = rank_at(1, 12, 30, "sum 2");
    EXPECT_EQ(records::from_json<FlightRecord>(records::to_json(record), "rank-1.json"), record);
}

TEST(FlightJson, OfAnotherSchemaIsRejectedByName) {
    try {
        records::from_json<FlightRecord>(R"({"schema": "hpcai500-progress/1"})", "rank-1.json");
        FAIL() << "it was read";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::data);
        EXPECT_NE(std::string(error.what()).find("rank-1.json"), std::string::npos);
    }
}

TEST(Laggards, AreThoseThatHaveBegunFewestSums) {
    const std::vector<FlightRecord> ranks{rank_at(0, 12, 31, "communication"),
                                          rank_at(1, 12, 30, "backward"),
                                          rank_at(2, 12, 31, "communication")};
    EXPECT_EQ(describe_laggards(ranks),
              "rank 1 (world rank 5 on node02, process 4712) is in backward of step 12, 63.0 s "
              "after its last step; ahead of that: 2 of 3 ranks");
}

TEST(Laggards, OfWhichAllAreAsFarAreAllNamedButNoMoreThanFour) {
    std::vector<FlightRecord> ranks;
    for (int rank = 0; rank < 6; ++rank) ranks.push_back(rank_at(rank, 3, 9, "communication"));
    const std::string text = describe_laggards(ranks);
    EXPECT_NE(text.find("rank 3 (world"), std::string::npos) << text;
    EXPECT_EQ(text.find("rank 4 (world"), std::string::npos) << text;
    EXPECT_NE(text.find("; at the same point: 2 more"), std::string::npos) << text;
    EXPECT_EQ(text.find("ahead of that"), std::string::npos) << text;
}

TEST(Laggards, ThatHaveNotBegunAreBeforeTheirFirstStep) {
    FlightRecord idle = rank_at(0, 0, 0, "input_wait");
    idle.events.clear();
    EXPECT_NE(describe_laggards(std::vector{idle}).find("is before its first step"),
              std::string::npos);
    EXPECT_EQ(describe_laggards({}), "");
}

TEST(Laggards, BetweenTwoPhasesAreAfterTheirLastEvent) {
    FlightRecord rank = rank_at(0, 12, 31, "backward");
    for (FlightEvent& event : rank.events) event.end_seconds = {60.0, ""};
    EXPECT_NE(describe_laggards(std::vector{rank}).find("is after backward of step 12"),
              std::string::npos);
}

}  // namespace
}  // namespace hpcai::report
