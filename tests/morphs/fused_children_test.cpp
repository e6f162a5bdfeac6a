// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/graph/fuse_for_device.hpp>

#include "device/device_rows.hpp"
#include "morphs/scripts.hpp"
#include "support/network_runner.hpp"

/// Children of edits, whose graphs have patterns that no other model has, on every device.
namespace hpcai::morphs {
namespace {

using graph::Graph;

class FusedChild : public testing::TestWithParam<device::DeviceRow> {
protected:
    graph::NetworkOptions options() const { return {device::Mode::training, GetParam().compute}; }

    naive::NetworkResult step(const Graph& graph, std::uint32_t batch) const {
        graph::NetworkRunner runner(graph, GetParam().make(), options());
        runner.set_parameters(graph::random_parameters(graph));
        return runner.step(graph::random_inputs(graph, batch), 0.25f);
    }

    /// The largest relative distance of a gradient, or of the losses, of two graphs.
    double distance(const Graph& a, const Graph& b, std::uint32_t batch) const {
        const auto got = step(a, batch), want = step(b, batch);
        double largest = graph::relative_distance(got.losses, want.losses);
        for (std::size_t id = 0; id < want.gradients.size(); ++id) {
            largest = std::max(largest, graph::relative_distance(got.gradients[id].values,
                                                                 want.gradients[id].values));
        }
        return largest;
    }
};

/// Values within rounding of 0 may pass a ReLU in one network only, so the better of two batches
/// counts.
TEST_P(FusedChild, HasTheGradientsOfTheUnfusedOne) {
    const bool is_exact = GetParam().compute == tensor::DType::f32 && !GetParam().tf32;
    if (!is_exact) return;
    const Graph root = make_resnet50(small_root());
    for (std::uint32_t number = 0; number < 4; ++number) {
        const Graph child = apply_all(root, random_script(root, 8, 600 + number));
        const Graph fused = graph::fuse_for_device(child, *GetParam().make(), options());
        EXPECT_LT(fused.nodes().size(), child.nodes().size());
        EXPECT_LT(std::min(distance(fused, child, 21), distance(fused, child, 22)), 1e-4) << number;
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, FusedChild, testing::ValuesIn(device::device_rows()),
                         [](const auto& test) { return device::to_string(test.param); });

}  // namespace
}  // namespace hpcai::morphs
