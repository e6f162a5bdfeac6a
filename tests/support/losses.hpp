// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <hpcai/graph/network.hpp>

namespace hpcai::graph {

/// Returns the losses of the last forward pass of a network on `device`, those of one node after
/// the other.
inline std::vector<float> read_losses(device::Device& device, const Network& network) {
    std::vector<float> losses;
    for (const std::span<const float> part : network.losses()) {
        losses.resize(losses.size() + part.size());
        const auto to = std::span(losses).last(part.size());
        device.download(std::as_writable_bytes(to), part.data());
    }
    return losses;
}

}  // namespace hpcai::graph
