// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/graph/fuse_for_device.hpp>

#include "device/device_rows.hpp"
#include "graph/graphs.hpp"

namespace hpcai::graph {
namespace {

/// The emulated cuDNN accepts all fused operations in every type, so the tests of networks on this
/// device also test those.
TEST(FusedGraph, FusesEverythingOnThisDevice) {
    for (const device::DeviceRow& row : device::device_rows()) {
        const Graph graph = fuse_for_device(small_resnet(), *row.make(),
                                            {device::Mode::training, row.compute, row.tf32});
        int added = 0, pooled = 0, summed = 0;
        for (const Node& node : graph.nodes()) {
            added += std::holds_alternative<ops::DualNorm>(node.operation);
            pooled += std::holds_alternative<ops::NormPool>(node.operation);
            summed += outputs_channel_sums(node.operation);
        }
        EXPECT_EQ(added, 2);
        EXPECT_EQ(pooled, 1);
        EXPECT_EQ(summed, 15);
    }
}

}  // namespace
}  // namespace hpcai::graph
