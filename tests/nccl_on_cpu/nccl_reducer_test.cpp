// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/philox.hpp>
#include <hpcai/comm/all_reduce_traffic.hpp>
#include <hpcai/comm/nccl_reducer.hpp>

#include "cuda_on_cpu/array.hpp"
#include "device/cuda/context.hpp"
#include "device/cuda/cuda_device.hpp"
#include "mpi/world.hpp"
#include "simt/streams.hpp"
#include "support/lockstep_sum.hpp"

/// All-reduces between GPUs of one rank each by NCCL, which tests/stand_in/nccl.cpp emulates.
namespace hpcai::comm {
namespace {

using device::Array;
using mpi_tests::world;
using tests::LockstepSum;

constexpr std::size_t kCount = 5000;

std::vector<float> gradients_of(int rank, std::uint32_t step) {
    CounterStream random(31, RandomPurpose::test, static_cast<std::uint32_t>(rank), step);
    std::vector<float> values(kCount);
    for (float& value : values) {
        value = static_cast<float>(random.normal() * std::exp(4 * random.uniform()));
    }
    return values;
}

struct Way {
    AllReduceAlgorithm algorithm = AllReduceAlgorithm::all_reduce;
    WireFormat format = WireFormat::fp32;
    int ranks_per_node = 1;  // the last node may have fewer
    simt::Order order = simt::Order::late;
};

class SumsOverGpus : public testing::TestWithParam<Way> {
protected:
    SumsOverGpus() {
        simt::set_order(GetParam().order);
        gpu_ = device::cuda::make_cuda_device({.autotune = false});
        reducer_ = make();
    }
    ~SumsOverGpus() override { simt::set_order(simt::Order::late); }

    AllReduceOptions options() const {
        AllReduceOptions options{GetParam().algorithm, GetParam().format, {}, {}};
        for (int rank = 0; rank < group_.size(); ++rank) {
            options.node_of_rank.push_back(rank / GetParam().ranks_per_node);
        }
        return options;
    }
    std::unique_ptr<GradientReducer> make() {
        return std::unique_ptr<GradientReducer>(
            hpcai_make_nccl_reducer({.group = group_, .device = *gpu_, .all_reduce = options()}));
    }
    /// Returns this rank's result of the schedules of all ranks, which all_reduce_schedule_test
    /// compares with fp64.
    std::vector<float> wanted(LockstepSum& all, std::uint32_t step) const {
        std::vector<std::vector<float>> of_all;
        for (int rank = 0; rank < group_.size(); ++rank) of_all.push_back(gradients_of(rank, step));
        return all.run(of_all)[static_cast<std::size_t>(group_.rank())];
    }
    void set(const Array<float>& values, const std::vector<float>& to) const {
        gpu_->upload(values.data(), std::as_bytes(std::span(to)));
    }
    std::vector<float> mine(std::uint32_t step) const { return gradients_of(group_.rank(), step); }
    /// Runs the all-reduces of a step that is not captured.
    std::vector<float> sum(GradientReducer& reducer, const Array<float>& values,
                           std::uint32_t step) const {
        set(values, mine(step));
        reducer.start_all_reduce(values.span())->wait();
        reducer.end_step();
        return values.read();
    }
    /// Returns memory for values that the reducer is prepared for.
    Array<float> memory(GradientReducer& reducer, std::size_t count = kCount) const {
        Array<float> values(*gpu_, std::vector<float>(count));
        reducer.prepare(values.span());
        return values;
    }

    Communicator& group_ = world().everyone;
    std::unique_ptr<device::Device> gpu_;
    std::unique_ptr<GradientReducer> reducer_;
};

std::string way_name(const testing::TestParamInfo<Way>& way) {
    return fmt::format("{}_{}_{}_{}", name_of(way.param.algorithm), name_of(way.param.format),
                       way.param.ranks_per_node,
                       way.param.order == simt::Order::late ? "late" : "early");
}

std::vector<Way> every_way() {
    std::vector<Way> ways;
    for (const auto format :
         {WireFormat::fp32, WireFormat::bf16, WireFormat::fp16, WireFormat::int8}) {
        ways.push_back({AllReduceAlgorithm::all_reduce, format});
        ways.push_back({AllReduceAlgorithm::torus_2d, format});
        for (int ranks : {2, 3}) ways.push_back({AllReduceAlgorithm::hierarchical, format, ranks});
        ways.push_back({AllReduceAlgorithm::torus_2d, format, 1, simt::Order::early});
    }
    return ways;
}

INSTANTIATE_TEST_SUITE_P(, SumsOverGpus, testing::ValuesIn(every_way()), way_name);

TEST_P(SumsOverGpus, HaveTheBitsOfTheProgramsInEveryStep) {
    LockstepSum all(options(), kCount);
    const Array<float> values = memory(*reducer_);
    for (std::uint32_t step = 0; step < 3; ++step) {
        EXPECT_EQ(sum(*reducer_, values, step), wanted(all, step)) << step;
    }
}

/// With so few values, some ranks own none.
TEST_P(SumsOverGpus, OfFewValuesAreRightToo) {
    for (const std::size_t count : {1, 255, 257, 600}) {
        const auto reducer = make();
        const Array<float> values = memory(*reducer, count);
        std::vector<float> terms = mine(0);
        terms.resize(count);
        set(values, terms);
        reducer->start_all_reduce(values.span())->wait();
        std::vector<std::vector<float>> of_all;
        for (int rank = 0; rank < group_.size(); ++rank) {
            of_all.push_back(gradients_of(rank, 0));
            of_all.back().resize(count);
        }
        const auto want = LockstepSum(options(), count).run(of_all);
        EXPECT_EQ(values.read(), want[static_cast<std::size_t>(group_.rank())]) << count;
    }
}

TEST_P(SumsOverGpus, HaveThemInRecordingsToo) {
    LockstepSum all(options(), kCount);
    const Array<float> values = memory(*reducer_);
    EXPECT_EQ(sum(*reducer_, values, 0), wanted(all, 0));
    reducer_->check();
    const auto recording = gpu_->record([&] { reducer_->start_all_reduce(values.span())->wait(); });
    for (std::uint32_t step = 1; step < 4; ++step) {
        set(values, mine(step));
        recording->run();
        reducer_->end_step();
        EXPECT_EQ(values.read(), wanted(all, step)) << step;
    }
    reducer_->check();
}

TEST_P(SumsOverGpus, CountTheBytesOfTheirMessagesInRecordingsToo) {
    const Array<float> values = memory(*reducer_);
    sum(*reducer_, values, 0);
    const auto recording = gpu_->record([&] { reducer_->start_all_reduce(values.span())->wait(); });
    for (int step = 1; step < 3; ++step) {
        recording->run();
        reducer_->end_step();
    }
    sum(*reducer_, values, 3);
    reducer_->check();
    const int node = options().node_of_rank[static_cast<std::size_t>(group_.rank())];
    const AllReduceTraffic got = gather_traffic(group_, node, *reducer_->sent());
    const AllReduceTraffic want = LockstepSum(options(), kCount).traffic();
    EXPECT_EQ(got.sent, 4 * want.sent);
    EXPECT_EQ(got.out_of_node, 4 * want.out_of_node);
}

/// The sums of two buckets in step 0, in a skipped step, and in steps 2 and 3. The skipped step has
/// a non-finite second bucket, or the test requires the skip. A fresh reducer gives the same sums
/// in steps 2 and 3.
TEST_P(SumsOverGpus, TakeNothingOfASkippedStepIntoTheNext) {
    for (const bool is_recorded : {false, true}) {
        for (const bool is_finite : {false, true}) {
            const auto tried = make(), fresh = make();
            const Array<float> one = memory(*tried), two = memory(*tried),
                               want_one = memory(*fresh), want_two = memory(*fresh);
            sum(*tried, one, 0);
            std::vector<float> large = mine(1);
            for (float& value : large) value *= 300;
            set(one, large);
            if (group_.rank() == 0 && !is_finite) large.back() = INFINITY;
            set(two, large);
            const auto both = [&] {
                tried->start_all_reduce(one.span())->wait();
                tried->start_all_reduce(two.span())->wait();
            };
            std::unique_ptr<device::Recording> recording;
            if (is_recorded) recording = gpu_->record(both);
            const auto run = [&] { recording ? recording->run() : both(); };
            run();
            if (is_finite) tried->skip_step();
            tried->end_step();
            for (const std::uint32_t step : {2, 3}) {
                set(one, mine(step));
                set(two, mine(step));
                run();
                tried->end_step();
                set(want_two, mine(step));
                fresh->start_all_reduce(want_two.span())->wait();
                EXPECT_EQ(one.read(), sum(*fresh, want_one, step)) << step;
                EXPECT_EQ(two.read(), want_two.read()) << step;
            }
        }
    }
}

TEST_P(SumsOverGpus, OfSeveralBucketsDoNotMix) {
    constexpr std::size_t kBuckets = 5, kBucket = kCount / kBuckets;
    const Array<float> alone(*gpu_, mine(9)), together(*gpu_, mine(9));
    const auto bucket = [](const Array<float>& values, std::size_t number) {
        return values.span().subspan(number * kBucket, kBucket);
    };
    const auto second = make();
    for (std::size_t number = 0; number < kBuckets; ++number) {
        reducer_->prepare(bucket(alone, number));
        second->prepare(bucket(together, number));
    }
    for (std::size_t number = 0; number < kBuckets; ++number) {
        reducer_->start_all_reduce(bucket(alone, number))->wait();
        gpu_->synchronize();
    }
    std::vector<std::unique_ptr<Request>> requests;
    for (std::size_t number = 0; number < kBuckets; ++number) {
        requests.push_back(second->start_all_reduce(bucket(together, number)));
    }
    for (const auto& request : requests) request->wait();
    EXPECT_EQ(together.read(), alone.read());
}

TEST_P(SumsOverGpus, AreRejectedWhereTheyWereNotPrepared) {
    const Array<float> values(*gpu_, mine(0));
    EXPECT_THROW(reducer_->start_all_reduce(values.span()), Error);
}

TEST_P(SumsOverGpus, StateHowTheyAreMade) {
    const std::string way =
        fmt::format(", {} in {}", name_of(GetParam().algorithm), name_of(GetParam().format));
    EXPECT_TRUE(reducer_->description().starts_with("nccl 2."));
    EXPECT_TRUE(reducer_->description().ends_with(way)) << reducer_->description();
}

TEST(SumsOfNccl, AreThoseOfAllRanks) {
    Communicator& group = world().everyone;
    const auto gpu = device::cuda::make_cuda_device({.autotune = false});
    const std::unique_ptr<GradientReducer> reducer(
        hpcai_make_nccl_reducer({.group = group, .device = *gpu}));
    const Array<float> values(*gpu, gradients_of(group.rank(), 0));
    reducer->start_all_reduce(values.span())->wait();
    reducer->end_step();
    reducer->check();
    EXPECT_FALSE(reducer->sent());
    const std::vector<float> got = values.read();
    std::vector<double> want(kCount);
    for (int rank = 0; rank < group.size(); ++rank) {
        const std::vector<float> terms = gradients_of(rank, 0);
        for (std::size_t i = 0; i < kCount; ++i) want[i] += static_cast<double>(terms[i]);
    }
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_NEAR(got[i], want[i], 1e-4 * group.size());
}

}  // namespace
}  // namespace hpcai::comm
