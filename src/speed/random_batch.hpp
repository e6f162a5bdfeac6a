// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <hpcai/graph/network.hpp>

namespace hpcai::speed {

/// A batch of random numbers for each input of a network, the same for the same seed: pixels or
/// normal numbers, each row's class or up to eight boxes of an eighth to half of the image a side.
class RandomBatch {
public:
    RandomBatch(const graph::Graph& graph, std::int64_t classes, std::uint64_t seed);

    /// Sets all inputs of the network of that graph.
    void feed(graph::Network& network) const;

private:
    std::map<std::string, std::vector<std::byte>> inputs_;
};

}  // namespace hpcai::speed
