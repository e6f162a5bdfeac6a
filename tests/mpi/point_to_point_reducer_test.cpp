// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/philox.hpp>
#include <hpcai/comm/all_reduce_traffic.hpp>
#include <hpcai/comm/gradient_buckets.hpp>
#include <hpcai/comm/gradient_reducer.hpp>
#include <hpcai/device/cpu_device.hpp>

#include "support/lockstep_sum.hpp"
#include "world.hpp"

namespace hpcai::comm {
namespace {

using mpi_tests::world;
using tests::LockstepSum;

/// Sizes below and above a block, and above the limit of one MPI call in this test.
const std::vector<std::size_t> kSizes{1, 300, 5000, 40000};

std::vector<float> gradients_of(int rank, std::size_t count, std::uint32_t step) {
    CounterStream random(31, RandomPurpose::test, static_cast<std::uint32_t>(rank), step,
                         static_cast<std::uint32_t>(count));
    std::vector<float> values(count);
    for (float& value : values) {
        value = static_cast<float>(random.normal() * std::exp(4 * random.uniform()));
    }
    return values;
}

std::vector<std::vector<float>> gradients_of_all(int ranks, std::size_t count, std::uint32_t step) {
    std::vector<std::vector<float>> all;
    for (int rank = 0; rank < ranks; ++rank) all.push_back(gradients_of(rank, count, step));
    return all;
}

/// `ranks_per_node` ranks per node; the last node may have fewer.
using Way = std::tuple<AllReduceAlgorithm, WireFormat, int>;

class ExchangesOverMpi : public testing::TestWithParam<Way> {
protected:
    AllReduceOptions options() const {
        const auto& [algorithm, format, ranks_per_node] = GetParam();
        AllReduceOptions options{algorithm, format, {}, {}};
        for (int rank = 0; rank < group_.size(); ++rank) {
            options.node_of_rank.push_back(rank / ranks_per_node);
        }
        return options;
    }

    bool is_native() const { return std::get<0>(GetParam()) == AllReduceAlgorithm::native; }

    Communicator& group_ = world().everyone;
};

std::string way_name(const testing::TestParamInfo<Way>& way) {
    const auto& [algorithm, format, ranks_per_node] = way.param;
    return fmt::format("{}_{}_{}", name_of(algorithm), name_of(format), ranks_per_node);
}

const auto kFormats =
    testing::Values(WireFormat::fp32, WireFormat::bf16, WireFormat::fp16, WireFormat::int8);

INSTANTIATE_TEST_SUITE_P(Flat, ExchangesOverMpi,
                         testing::Combine(testing::Values(AllReduceAlgorithm::all_reduce,
                                                          AllReduceAlgorithm::torus_2d),
                                          kFormats, testing::Values(1)),
                         way_name);
INSTANTIATE_TEST_SUITE_P(Nodes, ExchangesOverMpi,
                         testing::Combine(testing::Values(AllReduceAlgorithm::hierarchical),
                                          kFormats, testing::Values(1, 2, 3)),
                         way_name);
INSTANTIATE_TEST_SUITE_P(Native, ExchangesOverMpi,
                         testing::Values(Way{AllReduceAlgorithm::native, WireFormat::fp32, 1}),
                         way_name);

/// all_reduce_schedule_test compares the schedules that LockstepSum runs with sums in fp64.
TEST_P(ExchangesOverMpi, GiveTheBitsOfTheSchedulesInEveryStepAndRun) {
    if (is_native()) GTEST_SKIP() << "the MPI library chooses the order of its sums";
    for (const std::size_t size : kSizes) {
        for (int run = 0; run < 2; ++run) {
            const auto reducer = make_point_to_point_reducer(group_, nullptr, options());
            LockstepSum all(options(), size);
            std::vector<float> values(size);
            for (std::uint32_t step = 0; step < 3; ++step) {
                std::ranges::copy(gradients_of(group_.rank(), size, step), values.begin());
                reducer->start_all_reduce(values)->wait();
                const auto want = all.run(gradients_of_all(
                    group_.size(), size, step))[static_cast<std::size_t>(group_.rank())];
                ASSERT_EQ(0, std::memcmp(values.data(), want.data(), size * sizeof(float)))
                    << size << " values in step " << step;
            }
        }
    }
}

TEST_P(ExchangesOverMpi, GiveTheSameBitsThroughHostMemory) {
    const auto device = device::make_cpu_device({});
    const auto direct = make_point_to_point_reducer(group_, nullptr, options());
    const auto staged = make_point_to_point_reducer(group_, device.get(), options());
    std::vector<float> one(5000), other(5000);
    for (std::uint32_t step = 0; step < 3; ++step) {
        const std::vector<float> mine = gradients_of(group_.rank(), one.size(), step);
        std::ranges::copy(mine, one.begin());
        std::ranges::copy(mine, other.begin());
        direct->start_all_reduce(one)->wait();
        staged->start_all_reduce(other)->wait();
        ASSERT_EQ(one, other) << step;
    }
}

TEST_P(ExchangesOverMpi, SumsInProgressAtTheSameTimeDoNotMix) {
    constexpr std::size_t kParts = 5;
    constexpr std::size_t kPart = 3000;
    const std::vector<float> mine = gradients_of(group_.rank(), kParts * kPart, 9);
    std::vector<float> alone = mine, together = mine;
    const auto first = make_point_to_point_reducer(group_, nullptr, options());
    for (std::size_t part = 0; part < kParts; ++part) {
        first->start_all_reduce(std::span(alone).subspan(part * kPart, kPart))->wait();
    }
    const auto second = make_point_to_point_reducer(group_, nullptr, options());
    std::vector<std::unique_ptr<Request>> requests;
    for (std::size_t part = 0; part < kParts; ++part) {
        requests.push_back(
            second->start_all_reduce(std::span(together).subspan(part * kPart, kPart)));
        // Ranks poll their all-reduces at different times.
        if (group_.rank() % 2 == 0) {
            for (const auto& request : requests) request->test();
        }
    }
    for (const auto& request : requests) request->wait();
    EXPECT_EQ(alone, together);
}

TEST_P(ExchangesOverMpi, CompleteThroughTestAlone) {
    std::vector<float> values = gradients_of(group_.rank(), 5000, 3), waited = values;
    const auto reducer = make_point_to_point_reducer(group_, nullptr, options());
    reducer->start_all_reduce(waited)->wait();
    const auto request = reducer->start_all_reduce(values);
    while (!request->test()) {
    }
    EXPECT_EQ(values, waited);
}

TEST_P(ExchangesOverMpi, ARequestWithoutAWaitIsWaitedForByItsDestructor) {
    std::vector<float> values = gradients_of(group_.rank(), 5000, 3), waited = values;
    const auto reducer = make_point_to_point_reducer(group_, nullptr, options());
    reducer->start_all_reduce(waited)->wait();
    reducer->start_all_reduce(values).reset();
    EXPECT_EQ(values, waited);
}

TEST_P(ExchangesOverMpi, BucketsGiveTheSumsOfEveryParameter) {
    std::vector<float> values(90'000);  // from 64 KiB on, Open MPI has another native algorithm
    const auto reducer = make_point_to_point_reducer(group_, nullptr, options());
    GradientBuckets buckets(*reducer, values,
                            {{0, 10}, {10, 40'000}, {40'000, 40'001}, {40'001, 90'000}},
                            {.bucket_bytes = 80'000});
    for (std::uint32_t step = 0; step < 3; ++step) {
        std::ranges::copy(gradients_of(group_.rank(), values.size(), step), values.begin());
        std::vector<double> want(values.begin(), values.end());
        group_.all_reduce_sum(want);
        for (std::size_t parameter = 4; parameter-- > 0;) {
            buckets.ready(parameter);
            buckets.progress();
        }
        buckets.finish();
        // Magnitudes are below 400 per rank; int8 rounds values three times and keeps one residual.
        const double coarse = std::get<1>(GetParam()) == WireFormat::int8   ? 8.0
                              : std::get<1>(GetParam()) == WireFormat::fp32 ? 1e-3
                                                                            : 3.0;
        for (std::size_t i = 0; i < values.size(); ++i) {
            ASSERT_NEAR(values[i], want[i], coarse * group_.size()) << i << " in step " << step;
        }
        std::vector<float> first = values;
        group_.broadcast(std::as_writable_bytes(std::span(first)), 0);
        ASSERT_EQ(values, first) << "other bits than rank 0's in step " << step;
    }
}

TEST_P(ExchangesOverMpi, NothingOfASkippedStepEntersTheNext) {
    const std::size_t size = 5000;
    const auto reducer = make_point_to_point_reducer(group_, nullptr, options());
    std::vector<float> values(size);
    const auto sum = [&](GradientReducer& of, std::uint32_t step) {
        std::ranges::copy(gradients_of(group_.rank(), size, step), values.begin());
        of.start_all_reduce(values)->wait();
        of.end_step();
        return values;
    };
    const auto fresh = make_point_to_point_reducer(group_, nullptr, options());
    const std::vector<float> want = sum(*fresh, 2);
    for (const bool is_finite : {false, true}) {
        sum(*reducer, 0);
        std::ranges::transform(gradients_of(group_.rank(), size, 1), values.begin(),
                               [](float value) { return 300 * value; });
        if (group_.rank() == 0 && !is_finite) values.back() = INFINITY;
        reducer->start_all_reduce(values)->wait();
        if (is_finite) reducer->skip_step();
        reducer->end_step();
        EXPECT_EQ(sum(*reducer, 2), want);
        if (is_finite) continue;
        reducer->skip_step();
        reducer->end_step();
    }
    sum(*reducer, 3);
    EXPECT_EQ(sum(*reducer, 4) == sum(*fresh, 4),
              std::get<1>(GetParam()) != WireFormat::int8 || group_.size() == 1)
        << "without what steps 2 and 3 left";
}

TEST_P(ExchangesOverMpi, CountTheBytesOfTheirMessages) {
    const auto reducer = make_point_to_point_reducer(group_, nullptr, options());
    std::vector<float> values(5000);
    for (int step = 0; step < 2; ++step) reducer->start_all_reduce(values)->wait();
    ASSERT_EQ(reducer->sent().has_value(), !is_native()) << "MPI does not report its messages";
    if (is_native()) return;
    const int node = options().node_of_rank[static_cast<std::size_t>(group_.rank())];
    const AllReduceTraffic got = gather_traffic(group_, node, *reducer->sent());
    const AllReduceTraffic want = LockstepSum(options(), values.size()).traffic();
    EXPECT_EQ(got.sent, 2 * want.sent);
    EXPECT_EQ(got.between_nodes, 2 * want.between_nodes);
    EXPECT_EQ(got.out_of_node, 2 * want.out_of_node);
}

/// Throws before its nth message, in any phase.
class FailingGroup final : public Communicator {
public:
    FailingGroup(Communicator& group, int messages) : group_(group), left_(messages) {}

    int rank() const override { return group_.rank(); }
    int size() const override { return group_.size(); }
    void all_reduce_sum(std::span<float> values) override { group_.all_reduce_sum(values); }
    void all_reduce_sum(std::span<double> values) override { group_.all_reduce_sum(values); }
    void all_reduce_sum(std::span<std::int64_t> values) override { group_.all_reduce_sum(values); }
    void all_reduce_max(std::span<double> values) override { group_.all_reduce_max(values); }
    void reduce_sum(std::span<float> values, int root) override { group_.reduce_sum(values, root); }
    void broadcast(std::span<std::byte> bytes, int root) override { group_.broadcast(bytes, root); }
    void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
        group_.all_gather(mine, all);
    }
    void send(std::span<const std::byte> bytes, int destination, int tag) override {
        group_.send(bytes, destination, tag);
    }
    void receive(std::span<std::byte> bytes, int source, int tag) override {
        group_.receive(bytes, source, tag);
    }
    std::unique_ptr<Request> start_exchange(std::span<const Outgoing> sends,
                                            std::span<const Incoming> receives, int tag) override {
        count_down();
        return group_.start_exchange(sends, receives, tag);
    }
    std::unique_ptr<Request> start_all_reduce_sum(std::span<const float> values,
                                                  std::span<float> sums) override {
        count_down();
        return group_.start_all_reduce_sum(values, sums);
    }
    void wait_until(const std::function<bool()>& is_done) override { group_.wait_until(is_done); }
    void barrier() override { group_.barrier(); }
    std::unique_ptr<Communicator> split(int color, int key) override {
        return group_.split(color, key);
    }
    void keep_alive(std::shared_ptr<const void> buffer) override {
        group_.keep_alive(std::move(buffer));
    }

private:
    void count_down() {
        if (left_-- > 0) return;
        const Error failure(ExitCode::data, "a photograph is missing");
        group_.announce_failure(failure);
        throw failure;
    }

    Communicator& group_;
    int left_;
};

TEST_P(ExchangesOverMpi, ARankThatFailsInAnyPhaseStopsAllWithItsReason) {
    if (group_.size() == 1) GTEST_SKIP() << "needs two ranks";
    for (int phase = 0; phase < 4; ++phase) {
        for (const std::size_t size : {std::size_t{300}, std::size_t{40000}}) {
            const auto group = group_.split(0, group_.rank());
            const bool is_failing = group->rank() == group->size() - 1;
            FailingGroup failing(*group, is_failing ? phase : 1 << 30);
            const auto reducer = make_point_to_point_reducer(failing, nullptr, options());
            std::vector<float> values(size);
            std::string reason;
            try {
                // If this all-reduce has sent all its messages, a later one detects the failure.
                for (int sum = 0; sum < 5; ++sum) {
                    reducer->start_all_reduce(values)->wait();
                    std::ranges::fill(values, 1.0F);
                }
                group->barrier();
            } catch (const Error& error) {
                reason = error.what();
            }
            EXPECT_EQ(reason, "a photograph is missing") << "phase " << phase;
            std::vector<float> others(size);
            EXPECT_THROW(reducer->start_all_reduce(others), Error)
                << "a failed group must stay failed";
            group_.barrier();
        }
    }
}

TEST(PointToPointReducer, DoesNotStartASumThatIsInProgress) {
    Communicator& group = world().everyone;
    if (group.size() == 1) GTEST_SKIP() << "a group of one rank has no all-reduce in progress";
    const AllReduceOptions options{AllReduceAlgorithm::torus_2d,
                                   WireFormat::bf16,
                                   {},
                                   std::vector<int>(static_cast<std::size_t>(group.size()))};
    const auto reducer = make_point_to_point_reducer(group, nullptr, options);
    std::vector<float> values(100);
    const auto request = reducer->start_all_reduce(values);
    EXPECT_THROW(reducer->start_all_reduce(values), Error);
    request->wait();
}

TEST(PointToPointReducer, RejectsAGridThatDoesNotFit) {
    Communicator& group = world().everyone;
    const AllReduceOptions options{AllReduceAlgorithm::torus_2d, WireFormat::fp32, group.size() + 1,
                                   std::vector<int>(static_cast<std::size_t>(group.size()))};
    EXPECT_THROW(make_point_to_point_reducer(group, nullptr, options), Error);
}

}  // namespace
}  // namespace hpcai::comm
