// SPDX-License-Identifier: Apache-2.0
#include "hpcai/comm/nccl_reducer.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cuda_on_cpu/array.hpp"
#include "hpcai/base/philox.hpp"
#include "hpcai/comm/sum_traffic.hpp"
#include "mpi/world.hpp"
#include "simt/streams.hpp"
#include "src/device/cuda/context.hpp"
#include "src/device/cuda/cuda_device.hpp"
#include "support/lockstep_sum.hpp"

/// Sums between GPUs of one rank each by NCCL, which tests/stand_in/nccl.cpp stands in for.
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
    SumAlgorithm algorithm = SumAlgorithm::all_reduce;
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

    SumOptions options() const {
        SumOptions options{GetParam().algorithm, GetParam().format, {}, {}};
        for (int rank = 0; rank < group_.size(); ++rank) {
            options.node_of_rank.push_back(rank / GetParam().ranks_per_node);
        }
        return options;
    }
    std::unique_ptr<GradientReducer> make() {
        return std::unique_ptr<GradientReducer>(
            hpcai_make_nccl_reducer({.group = group_, .device = *gpu_, .sums = options()}));
    }
    /// What this rank gets from the programs of all, which sum_program_test holds against fp64.
    std::vector<float> wanted(LockstepSum& all, std::uint32_t step) const {
        std::vector<std::vector<float>> of_all;
        for (int rank = 0; rank < group_.size(); ++rank) of_all.push_back(gradients_of(rank, step));
        return all.run(of_all)[static_cast<std::size_t>(group_.rank())];
    }
    void set(const Array<float>& values, const std::vector<float>& to) const {
        gpu_->upload(values.data(), std::as_bytes(std::span(to)));
    }
    std::vector<float> mine(std::uint32_t step) const { return gradients_of(group_.rank(), step); }
    /// The sums of a step that is not recorded.
    std::vector<float> sum(GradientReducer& reducer, const Array<float>& values,
                           std::uint32_t step) const {
        set(values, mine(step));
        reducer.start_sum(values.span())->wait();
        reducer.end_step();
        return values.read();
    }
    Array<float> memory() const { return {*gpu_, std::vector<float>(kCount)}; }

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
        ways.push_back({SumAlgorithm::all_reduce, format});
        ways.push_back({SumAlgorithm::torus_2d, format});
        for (int ranks : {2, 3}) ways.push_back({SumAlgorithm::hierarchical, format, ranks});
        ways.push_back({SumAlgorithm::torus_2d, format, 1, simt::Order::early});
    }
    return ways;
}

INSTANTIATE_TEST_SUITE_P(, SumsOverGpus, testing::ValuesIn(every_way()), way_name);

TEST_P(SumsOverGpus, HaveTheBitsOfTheProgramsInEveryStep) {
    LockstepSum all(options(), kCount);
    const Array<float> values = memory();
    for (std::uint32_t step = 0; step < 3; ++step) {
        EXPECT_EQ(sum(*reducer_, values, step), wanted(all, step)) << step;
    }
}

TEST_P(SumsOverGpus, HaveThemInRecordingsToo) {
    LockstepSum all(options(), kCount);
    const Array<float> values = memory();
    EXPECT_EQ(sum(*reducer_, values, 0), wanted(all, 0));
    reducer_->check();
    const auto recording = gpu_->record([&] { reducer_->start_sum(values.span())->wait(); });
    for (std::uint32_t step = 1; step < 4; ++step) {
        set(values, mine(step));
        recording->run();
        reducer_->end_step();
        EXPECT_EQ(values.read(), wanted(all, step)) << step;
    }
    reducer_->check();
}

TEST_P(SumsOverGpus, CountTheBytesOfTheirMessagesInRecordingsToo) {
    const Array<float> values = memory();
    sum(*reducer_, values, 0);
    const auto recording = gpu_->record([&] { reducer_->start_sum(values.span())->wait(); });
    for (int step = 1; step < 3; ++step) {
        recording->run();
        reducer_->end_step();
    }
    reducer_->check();
    const int node = options().node_of_rank[static_cast<std::size_t>(group_.rank())];
    const SumTraffic got = gather_traffic(group_, node, *reducer_->sent());
    const SumTraffic want = LockstepSum(options(), kCount).traffic();
    EXPECT_EQ(got.sent, 3 * want.sent);
    EXPECT_EQ(got.out_of_node, 3 * want.out_of_node);
}

TEST_P(SumsOverGpus, TakeNothingOfAStepThatIsLeftOutIntoTheNext) {
    const auto fresh = make();
    const Array<float> values = memory(), others = memory();
    const std::vector<float> want = sum(*fresh, others, 2);
    for (const bool is_finite : {false, true}) {
        sum(*reducer_, values, 0);
        std::vector<float> large = mine(1);
        for (float& value : large) value *= 300;
        if (group_.rank() == 0 && !is_finite) large.back() = INFINITY;
        set(values, large);
        reducer_->start_sum(values.span())->wait();
        if (is_finite) reducer_->leave_out_step();
        reducer_->end_step();
        EXPECT_EQ(sum(*reducer_, values, 2), want);
        if (is_finite) continue;
        reducer_->leave_out_step();
        reducer_->end_step();
    }
    sum(*reducer_, values, 3);
    EXPECT_EQ(sum(*reducer_, values, 4) == sum(*fresh, others, 4),
              GetParam().format != WireFormat::int8 || group_.size() == 1)
        << "without what steps 2 and 3 left";
}

TEST_P(SumsOverGpus, OfSeveralBucketsDoNotMix) {
    constexpr std::size_t kBuckets = 5, kBucket = kCount / kBuckets;
    const Array<float> alone = memory(), together = memory();
    const auto bucket = [](const Array<float>& values, std::size_t number) {
        return values.span().subspan(number * kBucket, kBucket);
    };
    set(alone, mine(9));
    set(together, mine(9));
    for (std::size_t number = 0; number < kBuckets; ++number) {
        reducer_->start_sum(bucket(alone, number))->wait();
        gpu_->synchronize();
    }
    const auto second = make();
    std::vector<std::unique_ptr<Request>> requests;
    for (std::size_t number = 0; number < kBuckets; ++number) {
        requests.push_back(second->start_sum(bucket(together, number)));
    }
    for (const auto& request : requests) request->wait();
    EXPECT_EQ(together.read(), alone.read());
}

TEST_P(SumsOverGpus, SayHowTheyAreMade) {
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
    reducer->start_sum(values.span())->wait();
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
