// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hpcai/plan/pipeline.hpp>

namespace hpcai::plan {
namespace {

using config::PipelineSchedule;
using enum PipelinePass;

/// The lists of all stages for (schedule, stages, micro-batches).
class Schedules : public testing::TestWithParam<std::tuple<PipelineSchedule, int, int>> {
protected:
    int stages() const { return std::get<1>(GetParam()); }
    int micro_batches() const { return std::get<2>(GetParam()); }
    bool is_gpipe() const { return std::get<0>(GetParam()) == PipelineSchedule::gpipe; }
    std::vector<PipelineTask> tasks(int stage) const {
        return pipeline_tasks(std::get<0>(GetParam()), stages(), stage, micro_batches());
    }
};

TEST_P(Schedules, TakeEachMicroBatchOnceForwardAndThenOnceBackwardInOrder) {
    for (int stage = 0; stage < stages(); ++stage) {
        const std::vector<PipelineTask> all = tasks(stage);
        EXPECT_EQ(all.size(), static_cast<std::size_t>(2 * micro_batches()));
        int forward_done = 0, backward_done = 0;
        for (const PipelineTask& task : all) {
            int& done = task.pass == forward ? forward_done : backward_done;
            EXPECT_EQ(task.micro_batch, done++) << stage;
            EXPECT_LE(backward_done, forward_done) << "backward before forward";
        }
    }
}

TEST_P(Schedules, HoldNoMoreMicroBatchesThanTheyMust) {
    for (int stage = 0; stage < stages(); ++stage) {
        const bool waits = is_gpipe() && stages() > 1;
        const int most = waits ? micro_batches() : std::min(stages() - stage, micro_batches());
        EXPECT_EQ(micro_batches_in_flight(tasks(stage)), most) << stage;
    }
}

/// Simulates a pipeline in which passes take one second each and messages no time; a stage executes
/// its list in order.
TEST_P(Schedules, EndAfterTheirBubbleAndNeverWaitInACircle) {
    const auto stage_count = static_cast<std::size_t>(stages());
    std::vector<std::vector<PipelineTask>> left;
    for (int stage = 0; stage < stages(); ++stage) left.push_back(tasks(stage));
    std::vector<int> forward_done(stage_count, 0), backward_done(stage_count, 0);
    int seconds = 0;
    const auto is_busy = [](const auto& list) { return !list.empty(); };
    while (std::ranges::any_of(left, is_busy)) {
        std::vector<std::size_t> able;
        for (std::size_t stage = 0; stage < stage_count; ++stage) {
            if (left[stage].empty()) continue;
            const auto [pass, micro_batch] = left[stage].front();
            const bool is_end = pass == forward ? stage == 0 : stage + 1 == stage_count;
            if (is_end || (pass == forward ? forward_done[stage - 1] : backward_done[stage + 1]) >
                              micro_batch) {
                able.push_back(stage);
            }
        }
        ASSERT_FALSE(able.empty()) << "all wait";
        for (const std::size_t stage : able) {
            ++(left[stage].front().pass == forward ? forward_done : backward_done)[stage];
            left[stage].erase(left[stage].begin());
        }
        ++seconds;
    }
    EXPECT_EQ(seconds, 2 * (micro_batches() + stages() - 1));
    const double idle = seconds - 2 * micro_batches();
    EXPECT_DOUBLE_EQ(bubble_fraction(stages(), micro_batches()), idle / seconds);
}

INSTANTIATE_TEST_SUITE_P(
    All, Schedules,
    testing::Combine(testing::Values(PipelineSchedule::gpipe,
                                     PipelineSchedule::one_forward_one_backward),
                     testing::Values(1, 2, 3, 4, 7), testing::Values(1, 2, 3, 4, 8, 13)));

TEST(PipelineTasks, AreThoseOfThePapers) {
    const auto one_f_one_b = PipelineSchedule::one_forward_one_backward;
    EXPECT_THAT(pipeline_tasks(one_f_one_b, 2, 0, 3),
                testing::ElementsAre(PipelineTask{forward, 0}, PipelineTask{forward, 1},
                                     PipelineTask{backward, 0}, PipelineTask{forward, 2},
                                     PipelineTask{backward, 1}, PipelineTask{backward, 2}));
    EXPECT_THAT(pipeline_tasks(one_f_one_b, 2, 1, 2),
                testing::ElementsAre(PipelineTask{forward, 0}, PipelineTask{backward, 0},
                                     PipelineTask{forward, 1}, PipelineTask{backward, 1}));
    EXPECT_THAT(pipeline_tasks(PipelineSchedule::gpipe, 2, 1, 2),
                testing::ElementsAre(PipelineTask{forward, 0}, PipelineTask{forward, 1},
                                     PipelineTask{backward, 0}, PipelineTask{backward, 1}));
}

}  // namespace
}  // namespace hpcai::plan
