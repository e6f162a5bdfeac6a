// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/gradient_buckets.hpp>

namespace hpcai::comm {
namespace {

/// A reducer of two ranks that records its calls.
class RecordingReducer final : public GradientReducer {
public:
    int size() const override { return 2; }
    std::string description() const override { return "recording"; }
    std::unique_ptr<Request> start_all_reduce(std::span<float> device_values) override;
    bool can_be_recorded() const override { return true; }
    void check() override {}
    std::optional<AllReduceSeconds> recorded_seconds() const override { return seconds; }
    void abort() noexcept override { calls += "abort "; }

    std::string calls;
    std::optional<AllReduceSeconds> seconds;
};

class RecordingRequest final : public Request {
public:
    RecordingRequest(std::string& calls, std::size_t size) : calls_(calls), size_(size) {}
    bool test() override { return true; }
    void wait() override { calls_ += "wait" + std::to_string(size_) + " "; }

private:
    std::string& calls_;
    std::size_t size_;
};

std::unique_ptr<Request> RecordingReducer::start_all_reduce(std::span<float> device_values) {
    calls += "sum" + std::to_string(device_values.size()) + " ";
    return std::make_unique<RecordingRequest>(calls, device_values.size());
}

class BucketsOfADevice : public testing::Test {
protected:
    GradientBuckets make(bool overlap, std::function<void(const Range&)> complete = {}) {
        return GradientBuckets(reducer_, gradients_, {{0, 1}, {1, 3}, {3, 6}},
                               {sizeof(float), overlap}, std::move(complete));
    }
    RecordingReducer reducer_;
    std::vector<float> gradients_ = std::vector<float>(6);
};

// If test() returns true, the host has no more work, but the device has not waited yet.
TEST_F(BucketsOfADevice, FinishWaitsForEveryAllReduceEvenIfItIsComplete) {
    GradientBuckets buckets = make(true);
    for (const std::size_t parameter : {2, 1, 0}) {
        buckets.ready(parameter);
        buckets.progress();
    }
    EXPECT_EQ(reducer_.calls, "sum3 sum2 sum1 ");
    buckets.finish();
    EXPECT_EQ(reducer_.calls, "sum3 sum2 sum1 wait3 wait2 wait1 ");
}

TEST_F(BucketsOfADevice, WithoutOverlapAllReducesStartInFinish) {
    GradientBuckets buckets = make(false);
    for (const std::size_t parameter : {2, 1, 0}) buckets.ready(parameter);
    EXPECT_EQ(reducer_.calls, "");
    buckets.finish();
    EXPECT_EQ(reducer_.calls, "sum3 wait3 sum2 wait2 sum1 wait1 ");
}

TEST_F(BucketsOfADevice, CallTheFunctionBeforeEachAllReduceOnceAStep) {
    const auto complete = [&](const Range& elements) {
        reducer_.calls += fmt::format("[{},{}) ", elements.begin, elements.end);
    };
    GradientBuckets early = make(true, complete);
    for (int step = 0; step < 2; ++step) {
        reducer_.calls.clear();
        for (const std::size_t parameter : {1, 2}) early.ready(parameter);
        EXPECT_EQ(reducer_.calls, "[3,6) sum3 [1,3) sum2 ");
        early.ready(0);
        early.finish();
        EXPECT_EQ(reducer_.calls, "[3,6) sum3 [1,3) sum2 [0,1) sum1 wait3 wait2 wait1 ");
    }
    reducer_.calls.clear();
    GradientBuckets late = make(false, complete);
    for (const std::size_t parameter : {2, 1, 0}) late.ready(parameter);
    late.finish();
    EXPECT_EQ(reducer_.calls, "[3,6) [1,3) [0,1) sum3 wait3 sum2 wait2 sum1 wait1 ");
}

TEST_F(BucketsOfADevice, TimeTheAllReducesWithoutTheFunctionBeforeThem) {
    const auto complete = [](const Range&) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    };
    for (const bool overlap : {true, false}) {
        GradientBuckets buckets = make(overlap, complete);
        for (const std::size_t parameter : {2, 1, 0}) buckets.ready(parameter);
        buckets.finish();
        const BucketAccounting& spent = buckets.accounting();
        EXPECT_LT(spent.exposed_seconds + spent.interleaved_seconds, 0.15);  // three calls
    }
}

/// A reducer whose all-reduces complete when the test decides.
class SlowReducer final : public GradientReducer {
public:
    class Sum final : public Request {
    public:
        explicit Sum(const bool& is_over) : is_over_(is_over) {}
        bool test() override { return is_over_; }
        void wait() override {}

    private:
        const bool& is_over_;
    };

    int size() const override { return 2; }
    std::string description() const override { return "slow"; }
    std::unique_ptr<Request> start_all_reduce(std::span<float>) override {
        return std::make_unique<Sum>(is_over);
    }
    bool can_be_recorded() const override { return false; }
    void check() override {}

    bool is_over = false;
};

TEST(OverlappedCommunication, IsTheTimeInWhichTheHostComputesDuringAllReduces) {
    constexpr auto kWork = std::chrono::milliseconds(20);
    constexpr double kSeconds = 0.02;
    std::vector<float> gradients(6);
    SlowReducer reducer;
    GradientBuckets buckets(reducer, gradients, {{0, 1}, {1, 3}, {3, 6}}, {sizeof(float), true});
    std::this_thread::sleep_for(kWork);  // no all-reduce is running
    buckets.ready(2);
    std::this_thread::sleep_for(kWork);
    buckets.progress();
    std::this_thread::sleep_for(kWork);
    EXPECT_EQ(buckets.accounting().overlapped_seconds, 0) << "the host has observed no end";
    reducer.is_over = true;
    buckets.progress();
    const double overlapped = buckets.accounting().overlapped_seconds;
    EXPECT_GE(overlapped, 2 * kSeconds);
    std::this_thread::sleep_for(kWork);  // the all-reduce has ended
    buckets.progress();
    EXPECT_EQ(buckets.accounting().overlapped_seconds, overlapped);
    reducer.is_over = false;
    buckets.ready(1);
    buckets.ready(0);
    std::this_thread::sleep_for(kWork);
    buckets.finish();
    EXPECT_GE(buckets.accounting().overlapped_seconds, overlapped + kSeconds);
}

TEST_F(BucketsOfADevice, ReportWhenAllReducesStartAndEnd) {
    for (const bool overlap : {true, false}) {
        GradientBuckets buckets = make(overlap);
        std::string reported;
        buckets.set_listener([&](std::size_t bucket, bool is_over) {
            reported += fmt::format("{}{} ", is_over ? "-" : "+", bucket);
        });
        for (const std::size_t parameter : {2, 1, 0}) {
            buckets.ready(parameter);
            buckets.progress();
        }
        buckets.finish();
        EXPECT_EQ(reported, "+0 -0 +1 -1 +2 -2 ") << overlap;
    }
}

TEST_F(BucketsOfADevice, OverlapNothingIfOverlapIsOff) {
    GradientBuckets buckets = make(false);
    for (const std::size_t parameter : {2, 1, 0}) buckets.ready(parameter);
    buckets.finish();
    EXPECT_EQ(buckets.accounting().overlapped_seconds, 0);
}

TEST(GradientBucketsOfOne, CallTheFunctionWithoutAnAllReduce) {
    const auto self = make_self_communicator();
    const auto reducer = make_mpi_reducer(*self);
    std::vector<float> gradients(6);
    std::size_t completed = 0;
    GradientBuckets buckets(
        *reducer, gradients, {{0, 1}, {1, 3}, {3, 6}}, {sizeof(float), true},
        [&](const Range& elements) { completed += elements.end - elements.begin; });
    for (const std::size_t parameter : {2, 1, 0}) buckets.ready(parameter);
    buckets.finish();
    EXPECT_EQ(completed, 6U);
}

TEST_F(BucketsOfADevice, AttributeTheDevicesTimesToAllStepsReplayedSinceTheLastRead) {
    GradientBuckets buckets = make(true);
    buckets.read_times();
    reducer_.seconds = {0.5, 2};
    buckets.read_times();
    EXPECT_FALSE(buckets.accounting().timed) << "no step was replayed";
    for (int step = 0; step < 3; ++step) buckets.count_replayed_step();
    buckets.read_times();
    reducer_.seconds = {0.25, 1};
    buckets.count_replayed_step();
    buckets.read_times();
    EXPECT_EQ(buckets.accounting().timed_steps, 4);
    ASSERT_TRUE(buckets.accounting().timed);
    EXPECT_EQ(buckets.accounting().timed->exposed, 3 * 0.5 + 0.25);
    EXPECT_EQ(buckets.accounting().timed->in_flight, 3 * 2 + 1);
}

TEST_F(BucketsOfADevice, DoNotCountStepsAsTimedThatNoDeviceTimed) {
    GradientBuckets buckets = make(true);
    buckets.count_replayed_step();
    buckets.read_times();
    EXPECT_FALSE(buckets.accounting().timed);
}

TEST_F(BucketsOfADevice, CountAReplayedStepWithoutAnotherAllReduce) {
    GradientBuckets buckets = make(true);
    buckets.count_replayed_step();
    EXPECT_EQ(reducer_.calls, "");
    EXPECT_EQ(buckets.accounting().steps, 1);
    EXPECT_EQ(buckets.accounting().bytes_reduced, 24);
}

TEST_F(BucketsOfADevice, AbortTheReducerOnlyIfAnExceptionDestroysThem) {
    { const GradientBuckets buckets = make(true); }
    EXPECT_EQ(reducer_.calls, "");
    try {
        const GradientBuckets buckets = make(true);
        throw std::runtime_error("the disk is full");
    } catch (const std::runtime_error&) {
        EXPECT_EQ(reducer_.calls, "abort ");
        const GradientBuckets others = make(true);
    }
    EXPECT_EQ(reducer_.calls, "abort ");
}

}  // namespace
}  // namespace hpcai::comm
