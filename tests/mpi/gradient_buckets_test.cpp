// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/gradient_buckets.hpp>
#include <hpcai/device/cpu_device.hpp>

#include "world.hpp"

namespace hpcai::comm {
namespace {

using mpi_tests::world;

std::vector<Range> ranges_of(const std::vector<std::size_t>& sizes) {
    std::vector<Range> ranges;
    std::size_t begin = 0;
    for (const std::size_t size : sizes) {
        ranges.push_back({begin, begin + size});
        begin += size;
    }
    return ranges;
}

/// Parameters of unequal sizes like ResNet's; one is larger than a bucket, one spans several MPI
/// calls.
const std::vector<std::size_t> kParameterSizes{10, 64, 64, 3000, 1, 700, 700, 64, 5, 1200, 21};

class BucketsOverMpi : public testing::TestWithParam<std::tuple<std::size_t, bool>> {
protected:
    Communicator& group_ = world().everyone;
    std::unique_ptr<GradientReducer> reducer_ = make_mpi_reducer(group_);
    std::vector<Range> ranges_ = ranges_of(kParameterSizes);
    std::vector<float> gradients_ = std::vector<float>(ranges_.back().end);
    BucketOptions options_{std::get<0>(GetParam()), std::get<1>(GetParam())};

    void write_gradient(std::size_t parameter, int step) {
        for (std::size_t index = ranges_[parameter].begin; index < ranges_[parameter].end;
             ++index) {
            gradients_[index] =
                static_cast<float>(static_cast<int>(index % 31) * (group_.rank() + 1) + step);
        }
    }

    /// Completes the gradients in the order of the backward pass, from the last parameter.
    void run_step(GradientBuckets& buckets, int step) {
        for (std::size_t parameter = ranges_.size(); parameter-- > 0;) {
            write_gradient(parameter, step);
            buckets.ready(parameter);
            buckets.progress();
        }
        buckets.finish();
    }

    /// Returns the sum of the gradients of `step`, and writes these gradients again.
    std::vector<float> naive_sum(int step) {
        for (std::size_t parameter = 0; parameter < ranges_.size(); ++parameter) {
            write_gradient(parameter, step);
        }
        std::vector<float> sum = gradients_;
        group_.all_reduce_sum(sum);
        return sum;
    }
};

INSTANTIATE_TEST_SUITE_P(Cuts, BucketsOverMpi,
                         testing::Combine(testing::Values<std::size_t>(4, 1024, 4096, 1 << 20),
                                          testing::Bool()));

TEST_P(BucketsOverMpi, SumWhatOneNaiveAllReduceSums) {
    GradientBuckets buckets(*reducer_, gradients_, ranges_, options_);
    for (int step = 0; step < 4; ++step) {
        run_step(buckets, step);
        const std::vector<float> sum = gradients_;
        ASSERT_EQ(sum, naive_sum(step)) << "step " << step;
    }
    EXPECT_EQ(buckets.accounting().steps, 4);
    const auto bytes = static_cast<std::int64_t>(gradients_.size() * sizeof(float));
    EXPECT_EQ(buckets.accounting().bytes_reduced, group_.size() == 1 ? 0 : 4 * bytes);
}

TEST_P(BucketsOverMpi, ThroughHostMemoryTheSumsAreTheSame) {
    const auto device = device::make_cpu_device({});
    AllReduceOptions options;
    options.node_of_rank.resize(static_cast<std::size_t>(group_.size()));
    const auto staged = make_point_to_point_reducer(group_, device.get(), options);
    GradientBuckets buckets(*staged, gradients_, ranges_, options_);
    for (int step = 0; step < 3; ++step) {
        run_step(buckets, step);
        const std::vector<float> sum = gradients_;
        ASSERT_EQ(sum, naive_sum(step)) << "step " << step;
    }
}

TEST_P(BucketsOverMpi, TheOrderOfReadyNeedNotBeTheSameOnAllRanks) {
    GradientBuckets buckets(*reducer_, gradients_, ranges_, options_);
    std::vector<std::size_t> order(ranges_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::rotate(order, order.begin() + group_.rank() % 4);
    for (const std::size_t parameter : order) {
        write_gradient(parameter, 7);
        buckets.ready(parameter);
    }
    buckets.finish();
    const std::vector<float> sum = gradients_;
    EXPECT_EQ(sum, naive_sum(7));
}

TEST_P(BucketsOverMpi, AReplayedStepCountsAsAnExecutedOne) {
    GradientBuckets buckets(*reducer_, gradients_, ranges_, options_);
    run_step(buckets, 0);
    const BucketAccounting once = buckets.accounting();
    buckets.count_replayed_step();
    EXPECT_EQ(buckets.accounting().steps, 2);
    EXPECT_EQ(buckets.accounting().bytes_reduced, 2 * once.bytes_reduced);
    EXPECT_EQ(buckets.accounting().exposed_seconds, once.exposed_seconds);
    EXPECT_EQ(buckets.accounting().interleaved_seconds, once.interleaved_seconds);
}

TEST_P(BucketsOverMpi, AStepThatMissesAGradientIsRejected) {
    GradientBuckets buckets(*reducer_, gradients_, ranges_, options_);
    // The first parameter completes the last bucket, so no layer waits for its sum.
    for (std::size_t parameter = ranges_.size(); parameter-- > 1;) {
        write_gradient(parameter, 0);
        buckets.ready(parameter);
    }
    EXPECT_THROW(buckets.finish(), Error);
    buckets.ready(0);
    EXPECT_THROW(buckets.ready(0), Error);
    buckets.finish();
}

TEST(GradientBuckets, AreFilledFromTheEndAndHoldWhatFits) {
    std::vector<float> gradients(100);
    const auto reducer = make_mpi_reducer(world().everyone);
    const auto count = [&](std::vector<std::size_t> sizes, std::size_t bucket_floats) {
        return GradientBuckets(*reducer, gradients, ranges_of(sizes),
                               {bucket_floats * sizeof(float), true})
            .ranges()
            .size();
    };
    EXPECT_EQ(count({10, 10, 10, 10}, 20), 2u);
    EXPECT_EQ(count({10, 10, 10}, 20), 2u);
    EXPECT_EQ(count({50, 5, 5}, 20), 2u);
    EXPECT_EQ(count({5, 50, 5}, 20), 3u);
    EXPECT_EQ(count({10, 10, 10}, 1000), 1u);
    EXPECT_EQ(count({}, 20), 0u);
}

TEST(GradientBuckets, RangesThatOverlapOrLeaveTheBufferAreRejected) {
    std::vector<float> gradients(100);
    const auto reducer = make_mpi_reducer(world().everyone);
    const auto make = [&](std::vector<Range> ranges) {
        GradientBuckets buckets(*reducer, gradients, std::move(ranges), {});
    };
    EXPECT_THROW(make({{0, 10}, {9, 20}}), Error);
    EXPECT_THROW(make({{50, 60}, {0, 10}}), Error);
    EXPECT_THROW(make({{0, 101}}), Error);
    EXPECT_THROW(make({{10, 5}}), Error);
}

}  // namespace
}  // namespace hpcai::comm
