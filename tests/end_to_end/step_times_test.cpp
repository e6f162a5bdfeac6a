// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>

#include <hpcai/report/csv.hpp>

#include "launch.hpp"

/// Time measurements of a complete run of two groups of two ranks on synthetic images.
namespace hpcai::end_to_end {
namespace {

constexpr double kSecondsTolerance = 1e-9;  // seconds, of sums of doubles

// Two epochs, and more steps than are traced.
const char* const kSynthetic =
    R"(run: {name: times, seed: 3, roofline: off, trace: true, trace_steps: 2}
workload: {classes: 4, image_size: 32, backbone_width: 8, target_quality: 0.25, epochs: 2}
bagging: {M: 2, P_degree: 2, sampler: none, out_of_bag: false}
data: {kind: synthetic, synthetic_samples: 32, synthetic_validation_samples: 8}
training: {batch_size: 8, learning_rate: 0.1, schedule: constant, warmup_epochs: 0, precision: fp32}
device: {kind: cpu, threads: 1}
communication: {bucket_mib: 0.4}
)";

double sum_of(const PhaseSeconds& phases) {
    return phases.input_wait + phases.forward + phases.backward + phases.communication +
           phases.optimizer + phases.other;
}

class StepTimes : public testing::Test {
protected:
    static void SetUpTestSuite() {
        folder_ = new storage::TemporaryFolder();
        write(*folder_ / "tiny.yaml", kSynthetic);
        const Outcome outcome = run_ranks(folder_->path(), 4, {});
        ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
        summary_ = new std::string(outcome.out);
    }
    static void TearDownTestSuite() {
        delete folder_;
        delete summary_;
    }

    static fs::path file(int group, const std::string& name) {
        return *folder_ / ("result/groups/" + std::to_string(group) + "/" + name);
    }
    static std::vector<StepRecord> steps(int group) {
        return report::steps_from_csv(text_of(file(group, "steps.csv")));
    }
    static std::vector<RankRecord> ranks(int group) {
        return report::ranks_from_csv(text_of(file(group, "ranks.csv")));
    }

    static storage::TemporaryFolder* folder_;
    static std::string* summary_;
};

storage::TemporaryFolder* StepTimes::folder_ = nullptr;
std::string* StepTimes::summary_ = nullptr;

TEST_F(StepTimes, AreTheGroupsTimeAndWork) {
    for (const int group : {0, 1}) {
        const std::vector<StepRecord> all = steps(group);
        ASSERT_EQ(all.size(), 8U);
        const nlohmann::json record = json_of(file(group, "record.json"))["record"];
        EXPECT_EQ(record["training_seconds"].get<double>(), all.back().end_seconds);
        EXPECT_EQ(record["iterations"], all.size());
        std::int64_t samples = 0;
        for (const StepRecord& step : all) samples += step.samples;
        EXPECT_EQ(record["samples_trained"], samples);
        EXPECT_EQ(all[3].epoch, 0);
        EXPECT_EQ(all[4].epoch, 1);
        for (const StepRecord& step : all) {
            EXPECT_NEAR(step.learning_rate, 0.1 * 8 / 256, 1e-12);
            EXPECT_GT(step.loss, 0);
        }
    }
}

TEST_F(StepTimes, HavePhasesThatAddUpToTheStep) {
    for (const int group : {0, 1}) {
        const std::vector<StepRecord> all = steps(group);
        for (std::size_t i = 0; i < all.size(); ++i) {
            const double begin = i == 0 ? 0 : all[i - 1].end_seconds;
            const double seconds = all[i].end_seconds - begin;
            const bool begins_epoch = i % 4 == 0;  // begins after a pause
            if (!begins_epoch) {
                EXPECT_NEAR(sum_of(all[i].phases), seconds, kSecondsTolerance) << i;
            }
            EXPECT_LE(sum_of(all[i].phases), seconds + kSecondsTolerance) << i;
            EXPECT_GT(all[i].phases.forward, 0);
            EXPECT_GT(all[i].phases.backward, 0);
            EXPECT_GT(all[i].phases.communication, 0);
            EXPECT_GT(all[i].phases.optimizer, 0);
        }
    }
}

TEST_F(StepTimes, OfTheRanksAreInTheTableAndTheRecord) {
    const nlohmann::json run = json_of(*folder_ / "result/result.json");
    for (const int group : {0, 1}) {
        const std::vector<RankRecord> both = ranks(group);
        ASSERT_EQ(both.size(), 2U);
        double largest = 0, sum = 0;
        for (const StepRecord& step : steps(group)) sum += step.phases.backward;
        EXPECT_NEAR(both[0].mean.backward, sum / 8, kSecondsTolerance) << "the leader's";
        for (const RankRecord& rank : both) {
            EXPECT_EQ(rank.world_rank, 2 * group + rank.group_rank);
            EXPECT_EQ(rank.steps, 8);
            EXPECT_FALSE(rank.host.empty());
            EXPECT_LE(rank.median_step_seconds, rank.p99_step_seconds);
            EXPECT_LE(rank.p99_step_seconds, rank.longest_step_seconds);
            EXPECT_GE(rank.overlapped_communication, 0);
            largest = std::max(largest, rank.mean.backward);
        }
        const nlohmann::json time = run["work"]["groups"][group]["time_breakdown"];
        EXPECT_EQ(time["backward"]["maximum"].get<double>(), largest);
        EXPECT_LE(time["backward"]["minimum"], time["backward"]["median"]);
        EXPECT_GE(run["time_breakdown"]["backward"]["maximum"], time["backward"]["maximum"]);
    }
    EXPECT_NE(summary_->find("\nstep of group "), std::string::npos);
    EXPECT_NE(summary_->find("backward "), std::string::npos);
}

/// A trace event with a duration.
struct Span {
    std::string name;
    double begin = 0, end = 0;
};

TEST_F(StepTimes, AreDrawnByTheTrace) {
    for (const int group : {0, 1}) {
        const nlohmann::json trace = json_of(file(group, "trace.json"));
        std::map<std::pair<int, int>, std::vector<Span>> lanes;  // by process and thread
        int all_reduces_started = 0, all_reduces_finished = 0;
        for (const auto& event : trace["traceEvents"]) {
            all_reduces_started += event["ph"] == "b";
            all_reduces_finished += event["ph"] == "e";
            if (event["ph"] != "X") continue;
            const double begin = event["ts"];
            lanes[{event["pid"], event["tid"]}].push_back(
                {event["name"], begin, begin + event["dur"].get<double>()});
        }
        EXPECT_EQ(all_reduces_started, all_reduces_finished);
        EXPECT_GE(all_reduces_started, 2 * 2) << "of two steps on two ranks";
        ASSERT_EQ(lanes.size(), 4U) << "steps and kernels of two ranks";
        for (const auto& [lane, spans] : lanes) {
            constexpr double kMicroseconds = 1e-2;  // of rounding
            std::vector<Span> open;
            for (const Span& span : spans) {
                while (!open.empty() && open.back().end <= span.begin + kMicroseconds) {
                    open.pop_back();
                }
                if (!open.empty()) {
                    EXPECT_LE(span.end, open.back().end + kMicroseconds) << span.name;
                }
                open.push_back(span);
            }
            EXPECT_EQ(lane.first / 2, group);
            if (lane.second == 0) {
                EXPECT_EQ(spans.front().name, "step 3");
                const auto steps = std::ranges::count_if(
                    spans, [](const Span& span) { return span.name.starts_with("step "); });
                EXPECT_EQ(steps, 2);
            } else {
                EXPECT_GT(spans.size(), 2U * 100) << "kernels of ResNet-50";
                const std::vector<Span>& steps = lanes[{lane.first, 0}];
                EXPECT_GE(spans.front().begin, steps.front().begin);
            }
        }
    }
}

TEST_F(StepTimes, AreNotMeasuredUnlessRequested) {
    const Outcome outcome =
        run_ranks(folder_->path(), 2,
                  {"bagging.M=1", "run.trace=false", "run.measure_phases=false"}, "plain");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    const auto all = report::steps_from_csv(text_of(*folder_ / "plain/groups/0/steps.csv"));
    ASSERT_EQ(all.size(), 8U);
    EXPECT_TRUE(std::isnan(all[3].phases.forward));
    const nlohmann::json time = json_of(*folder_ / "plain/result.json")["time_breakdown"];
    EXPECT_EQ(time["forward"]["median_reason"], "run.measure_phases is false");
    EXPECT_GT(time["step_seconds"], 0);
    EXPECT_FALSE(fs::exists(*folder_ / "plain/groups/0/trace.json"));
}

TEST_F(StepTimes, OfAPipelineAddUpToo) {
    const Outcome outcome = run_ranks(
        folder_->path(), 2,
        {"bagging.M=1", "run.trace=true", "parallel.mode=pipeline", "parallel.micro_batches=2"},
        "pipeline");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    const auto all = report::steps_from_csv(text_of(*folder_ / "pipeline/groups/0/steps.csv"));
    ASSERT_EQ(all.size(), 8U);
    for (std::size_t i : {1, 2, 3, 5, 6, 7}) {
        EXPECT_NEAR(sum_of(all[i].phases), all[i].end_seconds - all[i - 1].end_seconds,
                    kSecondsTolerance);
        EXPECT_GT(all[i].phases.communication, 0) << "waits for the other stage";
    }
    for (const RankRecord& rank :
         report::ranks_from_csv(text_of(*folder_ / "pipeline/groups/0/ranks.csv"))) {
        EXPECT_GT(rank.mean.forward, 0);
        EXPECT_TRUE(std::isnan(rank.overlapped_communication)) << "no replicas, no all-reduces";
    }
}

}  // namespace
}  // namespace hpcai::end_to_end
