// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <hpcai/report/trace_json.hpp>

namespace hpcai::report {
namespace {

using nlohmann::json;

RankTrace traced_step() {
    RankTrace trace{1, 3, "node\"1\xff", {}};
    trace.events = {{TraceLane::steps, "forward", "", 2, 3},
                    {TraceLane::steps, "step 4", "", 2, 4},
                    {TraceLane::kernels, "conv1", "weight_gradient", 2.25, 2.5},
                    {TraceLane::all_reduces, "bucket 0", "", 2.5, 3.5}};
    return trace;
}

json parsed(const std::vector<RankTrace>& ranks, double offset) {
    std::vector<std::string> shares;
    for (const RankTrace& rank : ranks) shares.push_back(trace_events(rank, offset));
    return json::parse(trace_json(shares))["traceEvents"];
}

TEST(TraceJson, NamesTheRankAndItsLanes) {
    const json events = parsed({traced_step()}, 0);
    EXPECT_EQ(events[0]["ph"], "M");
    EXPECT_EQ(events[0]["name"], "process_name");
    EXPECT_EQ(events[0]["pid"], 3);
    EXPECT_EQ(events[0]["args"]["name"], "rank 3 (group rank 1), node\"1\xEF\xBF\xBD");
    EXPECT_EQ(events[2]["args"]["name"], "kernels");
}

TEST(TraceJson, HasMicrosecondsOnTheLeadersClock) {
    const json events = parsed({traced_step()}, 0.5);
    const auto named = [&](const std::string& name) {
        for (const json& event : events) {
            if (event["name"] == name) return event;
        }
        return json();
    };
    EXPECT_EQ(named("conv1")["ts"], 2.75e6);
    EXPECT_EQ(named("conv1")["dur"], 0.25e6);
    EXPECT_EQ(named("conv1")["cat"], "kernel");
    EXPECT_EQ(named("conv1")["args"]["pass"], "weight_gradient");
    EXPECT_EQ(named("forward")["tid"], named("step 4")["tid"]);
    EXPECT_NE(named("conv1")["tid"], named("step 4")["tid"]);
}

// Viewers nest later events in earlier ones.
TEST(TraceJson, PutsAStepBeforeThePhaseThatBeginsWithIt) {
    const json events = parsed({traced_step()}, 0);
    EXPECT_EQ(events[4]["name"], "step 4");
    EXPECT_EQ(events[5]["name"], "forward");
}

TEST(TraceJson, LetsSumsOverlap) {
    const json events = parsed({traced_step(), traced_step()}, 0);
    const json &begin = events[7], &end = events[8];
    EXPECT_EQ(begin["ph"], "b");
    EXPECT_EQ(end["ph"], "e");
    EXPECT_EQ(begin["id"], end["id"]);
    EXPECT_EQ(begin["ts"], 2.5e6);
    EXPECT_EQ(end["ts"], 3.5e6);
    EXPECT_EQ(events.size(), 18U) << "of two ranks";
}

}  // namespace
}  // namespace hpcai::report
