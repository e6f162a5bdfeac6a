// SPDX-License-Identifier: Apache-2.0
#include <barrier>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "device/kernel_runner.hpp"
#include "device/random_problems.hpp"
#include "support/largest_error.hpp"

/// A BatchNorm with statistics over several ranks, each with its part of the batch, compared with
/// the naive BatchNorm over the whole batch. The ranks are threads.
namespace hpcai::device {
namespace {

/// The state shared by the threads that represent ranks: the addresses of their values while all
/// wait. Otherwise one thread runs at a time, because the emulated GPU serves only one.
struct Team {
    explicit Team(int ranks) : meeting(ranks), values(static_cast<std::size_t>(ranks)) {}
    std::barrier<> meeting;
    std::vector<std::span<const double>> values;
    std::mutex turn;
};

class TeamSum final : public SyncBatchNormReducer {
public:
    TeamSum(Team& team, std::size_t rank) : team_(team), rank_(rank) {}
    int ranks() const override { return static_cast<int>(team_.values.size()); }
    void sum(std::span<double> values) override {
        team_.values[rank_] = values;
        team_.turn.unlock();
        team_.meeting.arrive_and_wait();
        std::vector<double> sums(values.size());
        for (const auto& part : team_.values) {
            for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += part[i];
        }
        team_.meeting.arrive_and_wait();
        team_.turn.lock();
        std::ranges::copy(sums, values.begin());
    }

private:
    Team& team_;
    std::size_t rank_;
};

naive::Tensor samples_of_rank(const naive::Tensor& whole, std::int64_t first, std::int64_t count) {
    tensor::Shape shape{count, whole.shape[1], whole.shape[2], whole.shape[3]};
    const std::int64_t sample = whole.shape.elements() / whole.shape[0];
    naive::Tensor part(shape);
    for (std::int64_t i = 0; i < part.shape.elements(); ++i) part[i] = whole[first * sample + i];
    return part;
}

/// Returns the share of rank `rank` of `ranks`, with the statistics of the whole problem.
naive::Problem share_of(const naive::Problem& whole, std::int64_t rank, std::int64_t ranks) {
    naive::Problem share = whole;
    auto& op = std::get<ops::BatchNorm>(share.operation);
    const std::int64_t batch = op.input[0], samples = batch / ranks;
    op.input = {samples, op.input[1], op.input[2], op.input[3]};
    op.statistics_samples = batch;
    for (naive::Tensor& input : share.inputs)
        input = samples_of_rank(input, rank * samples, samples);
    for (naive::Tensor& gradient : share.output_gradients) {
        gradient = samples_of_rank(gradient, rank * samples, samples);
    }
    return share;
}

void append(naive::Tensor& whole, const naive::Tensor& part) {
    whole.values.insert(whole.values.end(), part.values.begin(), part.values.end());
}

class RankStatistics : public testing::TestWithParam<DeviceRow> {
protected:
    std::vector<naive::Solution> run(const naive::Problem& whole, int ranks) {
        Team team(ranks);
        std::vector<naive::Solution> solutions(static_cast<std::size_t>(ranks));
        std::vector<std::jthread> threads;
        for (int rank = 0; rank < ranks; ++rank) {
            threads.emplace_back([&, rank] {
                const std::lock_guard turn(team.turn);
                const naive::Problem share = share_of(whole, rank, ranks);
                TeamSum sum(team, static_cast<std::size_t>(rank));
                solutions[static_cast<std::size_t>(rank)] =
                    KernelRunner(GetParam(), share, &sum).run();
            });
        }
        threads.clear();
        return solutions;
    }

    void expect_like_whole_batch(const ops::BatchNorm& op, int ranks, double mean = 0.5) {
        SCOPED_TRACE(to_string(op.input) + " over " + std::to_string(ranks) + " ranks");
        const naive::Problem whole = random_batch_norm(GetParam().compute, op, 1, mean);
        const naive::Solution want = naive::solve(whole);
        naive::Solution got;
        got.input_gradients.resize(want.input_gradients.size());
        got.parameter_gradients = {naive::Tensor({op.input[3]}), naive::Tensor({op.input[3]})};
        for (const naive::Solution& rank : run(whole, ranks)) {
            append(got.output, rank.output);
            for (std::size_t i = 0; i < got.input_gradients.size(); ++i) {
                append(got.input_gradients[i], rank.input_gradients[i]);
            }
            for (std::size_t i = 0; i < 2; ++i) {
                got.parameter_gradients[i] =
                    naive::sum({got.parameter_gradients[i], rank.parameter_gradients[i]});
            }
            expect_close(rank.running_mean, want.running_mean, fp32_, "running mean");
            expect_close(rank.running_variance, want.running_variance, fp32_, "running variance");
        }
        expect_close(got.output, want.output, stored_, "output");
        for (std::size_t i = 0; i < got.input_gradients.size(); ++i) {
            expect_close(got.input_gradients[i], want.input_gradients[i], stored_,
                         "input gradient " + std::to_string(i));
        }
        for (std::size_t i = 0; i < 2; ++i) {
            expect_close(got.parameter_gradients[i], want.parameter_gradients[i], fp32_,
                         "parameter gradient " + std::to_string(i));
        }
    }

    double stored_ = GetParam().tolerance.stored, fp32_ = GetParam().tolerance.fp32;
};

TEST_P(RankStatistics, AreThoseOfTheWholeBatch) {
    for (const int ranks : {2, 4}) {
        for (const std::int64_t channels : {3, 16, 21, 64}) {
            expect_like_whole_batch({.input = {8, 5, 6, channels}}, ranks);
        }
        expect_like_whole_batch({.input = {8, 6, 5, 32}, .relu = true}, ranks);
        expect_like_whole_batch({.input = {8, 6, 5, 32}, .add = true, .relu = true}, ranks);
        expect_like_whole_batch({.input = {4, 1, 1, 16}, .epsilon = 0.5, .momentum = 0.3}, ranks);
    }
}

TEST_P(RankStatistics, KeepTheirPrecisionFarFromZero) {
    // As for one rank, squares of fp32 numbers around 1e4 would lose a variance of 1.
    const bool fp32 = GetParam().compute == tensor::DType::f32;
    const double mean = fp32 ? 1e4 : 100, rounding = mean * 0x1p-23;
    stored_ = fp32 ? 4 * rounding : 8e-3;
    fp32_ = std::max(4 * rounding, 1e-4);
    expect_like_whole_batch({.input = {4, 20, 20, 16}}, 2, mean);
}

TEST_P(RankStatistics, AreRejectedWithoutASumOverAsManyRanks) {
    const auto device = GetParam().make();
    Team team(2);
    TeamSum of_two(team, 0);
    const ops::BatchNorm of_four{.input = {2, 4, 4, 16}, .statistics_samples = 8};
    EXPECT_THROW(device->build(of_four, {.compute = GetParam().compute}), Error);
    EXPECT_THROW(
        device->build(of_four, {.compute = GetParam().compute, .sync_batch_norm_reducer = &of_two}),
        Error);
    EXPECT_NO_THROW(
        device->build(of_four, {.compute = GetParam().compute, .mode = Mode::inference}));
}

INSTANTIATE_TEST_SUITE_P(Devices, RankStatistics, testing::ValuesIn(device_rows()),
                         [](const auto& test) { return to_string(test.param); });

}  // namespace
}  // namespace hpcai::device
