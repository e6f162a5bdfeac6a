// SPDX-License-Identifier: Apache-2.0
// Networks of fused operations on devices that accept some, against the same networks without
// fusion.
#include <gtest/gtest.h>

#include <hpcai/graph/fuse_for_device.hpp>

#include "device/device_rows.hpp"
#include "graph/graphs.hpp"
#include "support/network_runner.hpp"

namespace hpcai::graph {
namespace {

using device::DeviceRow;

/// cuDNN fuses convolutions in fp16 only. Its emulation on a CPU does so in every type; in fp32,
/// wrong formulas differ clearly from rounding errors.
class FusedNetwork : public testing::TestWithParam<DeviceRow> {
protected:
    NetworkOptions options() const {
        return {device::Mode::training, GetParam().compute, GetParam().tf32};
    }
    Graph fused(const Graph& graph) const {
        return fuse_for_device(graph, *GetParam().make(), options());
    }
    bool is_exact() const { return GetParam().compute == tensor::DType::f32 && !GetParam().tf32; }
    struct Result {
        naive::NetworkResult step;
        std::vector<double> statistics;
    };
    Result run(const Graph& graph) const {
        NetworkRunner runner(graph, GetParam().make(), options());
        runner.set_parameters(random_parameters(graph));
        Result result{runner.step(random_inputs(graph), 0.25f), {}};
        const std::vector<float> statistics = runner.store.read(runner.store.statistics());
        result.statistics.assign(statistics.begin(), statistics.end());
        return result;
    }
};

/// In fp32 the variance differs, E[x^2] - E[x]^2 of fp32 sums: 2^-24 (1 + mean^2 / variance). Means
/// are at most some deviations here.
TEST_P(FusedNetwork, HasTheGradientsOfTheUnfusedOne) {
    if (!is_exact()) return;
    const Graph graph = small_resnet();
    const Result unfused = run(graph), together = run(fused(graph));
    expect_same_step(together.step, unfused.step, graph, 1e-5);
    EXPECT_LT(relative_distance(together.statistics, unfused.statistics), 1e-6);
    const auto want =
        naive::Network(graph).run(random_inputs(graph), random_parameters(graph), 0.25);
    expect_same_step(together.step, want, graph, 1e-4);
}

/// All gradients in one row.
std::vector<double> row_of(const naive::NetworkResult& step) {
    std::vector<double> row;
    for (const naive::Tensor& gradient : step.gradients) {
        row.insert(row.end(), gradient.values.begin(), gradient.values.end());
    }
    return row;
}

/// Roundings of half types change gates of ReLUs, which affects later layers. Two networks that
/// round differently differ as much as each from the exact result, so both are compared with the
/// exact one.
TEST_P(FusedNetwork, IsAsNearToTheTruthAsTheUnfusedOne) {
    const Graph graph = small_resnet();
    const auto truth =
        naive::Network(graph).run(random_inputs(graph), random_parameters(graph), 0.25);
    const Result unfused = run(graph), together = run(fused(graph));
    const auto distances = [&](const Result& result) {
        return std::vector{relative_distance(result.step.losses, truth.losses),
                           relative_distance(result.step.probabilities, truth.probabilities),
                           relative_distance(row_of(result.step), row_of(truth))};
    };
    const std::vector<double> got = distances(together), simple = distances(unfused);
    for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_LT(got[i], 2 * simple[i] + 1e-6);
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, FusedNetwork, testing::ValuesIn(device::device_rows()),
                         [](const auto& test) { return device::to_string(test.param); });

}  // namespace
}  // namespace hpcai::graph
