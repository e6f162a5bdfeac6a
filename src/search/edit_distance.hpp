// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include <hpcai/graph/graph.hpp>

/// The edit distance of networks, as that of Auto-Keras and nni 2.10.1 (Jin, Song, Hu 2019, section
/// 3.2), which AIPerf uses.
namespace hpcai::search {

/// One layer of the longest chain.
struct Layer {
    std::size_t kind = 0;  // index of the operation
    // Convolution: filters, kernel, stride; pooling: padding, kernel, stride; zeros otherwise
    std::array<double, 3> attributes{};

    bool operator==(const Layer&) const = default;
};

/// A way around a part of the longest chain.
struct Skip {
    double first = 0;      // number of layers of the chain before it
    double last = 0;       // number of layers of the chain before the layer that joins it
    std::size_t kind = 0;  // of the layer that joins it
};

struct Descriptor {
    std::vector<Layer> layers;
    std::vector<Skip> skips;
};

/// Describes the longest chain of nodes that ends in the graph's last node, and the skips around
/// it. Names and the batch size do not matter.
Descriptor describe(const graph::Graph& graph);

/// Returns the cost of the cheapest alignment of the layers plus that of the cheapest assignment of
/// the skips. An inserted or deleted layer costs 1. A replaced layer costs 1 if the kinds differ,
/// else the mean of |x - y| / max(x, y) over the attributes x and y. A skip without partner costs
/// 1, as does a pair of different kinds. Other pairs of skips, of L and L' layers after u and u'
/// layers, cost (|u - u'| + |L - L'|) / (max(u, u') + max(L, L')).
double edit_distance(const Descriptor& a, const Descriptor& b);

/// Returns the smallest sum of costs[row * columns + column] over assignments of each row to a
/// column of its own; rows <= columns (Hungarian method).
double cheapest_assignment(std::span<const double> costs, std::size_t rows, std::size_t columns);

}  // namespace hpcai::search
