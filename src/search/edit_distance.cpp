// SPDX-License-Identifier: Apache-2.0
#include "edit_distance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>
#include <variant>

namespace hpcai::search {
namespace {

template <typename... Cases>
struct Overloaded : Cases... {
    using Cases::operator()...;
};

std::array<double, 3> numbers(std::int64_t a, std::int64_t b, std::int64_t c) {
    return {static_cast<double>(a), static_cast<double>(b), static_cast<double>(c)};
}

Layer layer_of(const graph::Node& node) {
    const auto attributes =
        std::visit(Overloaded{
                       [](const ops::Convolution& layer) {
                           return numbers(layer.filters, layer.kernel, layer.stride);
                       },
                       [](const ops::MaxPool& layer) {
                           return numbers(layer.padding, layer.kernel, layer.stride);
                       },
                       [](const auto& /*other*/) { return numbers(0, 0, 0); },
                   },
                   node.operation);
    return {node.operation.index(), attributes};
}

/// The longest chain of nodes that ends in each node, and the longest chain of the graph.
struct Chains {
    std::vector<std::int64_t> length;    // [node] number of nodes of its chain
    std::vector<graph::NodeId> before;   // [node] the node before it in its chain
    std::vector<std::int64_t> in_chain;  // [node] index in the graph's chain; -1: not in it
};

/// Calls visit(producer) for each input of a node; the producer of a graph input is kNoNode.
template <typename Visit>
void for_each_producer(const graph::Graph& graph, const graph::Node& node, const Visit& visit) {
    for (const graph::ValueId input : node.inputs) visit(graph.value(input).producer);
}

Chains find_chains(const graph::Graph& graph) {
    const std::size_t nodes = graph.nodes().size();
    Chains chains{std::vector<std::int64_t>(nodes, 1),
                  std::vector<graph::NodeId>(nodes, graph::kNoNode),
                  std::vector<std::int64_t>(nodes, -1)};
    for (std::size_t node = 0; node < nodes; ++node) {
        for_each_producer(graph, graph.nodes()[node], [&](graph::NodeId producer) {
            if (producer == graph::kNoNode) return;
            const std::int64_t length = chains.length[static_cast<std::size_t>(producer)] + 1;
            if (length <= chains.length[node]) return;
            chains.length[node] = length;
            chains.before[node] = producer;
        });
    }
    for (auto node = static_cast<graph::NodeId>(nodes) - 1; node != graph::kNoNode;) {
        const auto index = static_cast<std::size_t>(node);
        chains.in_chain[index] = chains.length[index] - 1;
        node = chains.before[index];
    }
    return chains;
}

/// Returns the number of layers of the graph's chain before the path to `node` leaves it.
double layers_before_branch(const Chains& chains, graph::NodeId node) {
    while (node != graph::kNoNode && chains.in_chain[static_cast<std::size_t>(node)] < 0) {
        node = chains.before[static_cast<std::size_t>(node)];
    }
    return node == graph::kNoNode
               ? 0
               : static_cast<double>(chains.in_chain[static_cast<std::size_t>(node)] + 1);
}

double relative_difference(double a, double b) {
    const double largest = std::max(a, b);
    return largest == 0 ? 0 : std::abs(a - b) / largest;
}

double layer_distance(const Layer& a, const Layer& b) {
    if (a.kind != b.kind) return 1;
    double sum = 0;
    for (std::size_t i = 0; i < a.attributes.size(); ++i) {
        sum += relative_difference(a.attributes[i], b.attributes[i]);
    }
    return sum / static_cast<double>(a.attributes.size());
}

/// Returns the cost of the cheapest alignment in which the numbers of inserted and deleted layers
/// never differ by more than `band`.
double banded_cost(std::span<const Layer> a, std::span<const Layer> b, std::size_t band) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    std::vector<double> above(b.size() + 1, kInfinity), row(b.size() + 1, kInfinity);
    for (std::size_t j = 0; j <= std::min(b.size(), band); ++j) above[j] = static_cast<double>(j);
    for (std::size_t i = 0; i < a.size(); ++i) {
        const std::size_t first = i < band ? 0 : i - band;  // of the columns of the band
        row[first] = i < band ? static_cast<double>(i + 1) : kInfinity;
        const std::size_t end = std::min(b.size(), i + 1 + band);
        for (std::size_t j = first; j < end; ++j) {
            row[j + 1] =
                std::min({row[j] + 1, above[j + 1] + 1, above[j] + layer_distance(a[i], b[j])});
        }
        std::swap(above, row);
        if (end < b.size()) row[end + 1] = above[end + 1] = kInfinity;
    }
    return above.back();
}

/// Removes equal layers at both ends, which a cheapest alignment pairs at no cost.
void remove_equal_ends(std::span<const Layer>& a, std::span<const Layer>& b) {
    while (!a.empty() && !b.empty() && a.front() == b.front()) {
        a = a.subspan(1);
        b = b.subspan(1);
    }
    while (!a.empty() && !b.empty() && a.back() == b.back()) {
        a = a.first(a.size() - 1);
        b = b.first(b.size() - 1);
    }
}

double alignment_cost(std::span<const Layer> a, std::span<const Layer> b) {
    remove_equal_ends(a, b);
    const std::size_t longer = std::max(a.size(), b.size());
    std::size_t band = 8 + longer - std::min(a.size(), b.size());
    double cost = banded_cost(a, b, band);
    // An alignment outside of the band costs more than the width of the band (Ukkonen 1985).
    while (cost > static_cast<double>(band) && band < longer) {
        band *= 2;
        cost = banded_cost(a, b, band);
    }
    return cost;
}

double skip_distance(const Skip& a, const Skip& b) {
    if (a.kind != b.kind) return 1;
    const double length_a = a.last - a.first, length_b = b.last - b.first;
    return (std::abs(a.first - b.first) + std::abs(length_a - length_b)) /
           (std::max(a.first, b.first) + std::max(length_a, length_b));
}

double skips_cost(std::span<const Skip> fewer, std::span<const Skip> more) {
    std::vector<double> costs;
    for (const Skip& a : fewer) {
        for (const Skip& b : more) costs.push_back(skip_distance(a, b));
    }
    return cheapest_assignment(costs, fewer.size(), more.size()) +
           static_cast<double>(more.size() - fewer.size());
}

}  // namespace

Descriptor describe(const graph::Graph& graph) {
    const Chains chains = find_chains(graph);
    Descriptor descriptor;
    for (std::size_t node = 0; node < graph.nodes().size(); ++node) {
        if (chains.in_chain[node] < 0) continue;
        const graph::Node& joined = graph.nodes()[node];
        const auto last = static_cast<double>(chains.in_chain[node]);
        descriptor.layers.push_back(layer_of(joined));
        bool is_chain_passed = false;
        for_each_producer(graph, joined, [&](graph::NodeId producer) {
            if (producer == chains.before[node] && !is_chain_passed) {
                is_chain_passed = true;
            } else if (producer != graph::kNoNode) {
                descriptor.skips.push_back(
                    {layers_before_branch(chains, producer), last, joined.operation.index()});
            }
        });
    }
    return descriptor;
}

double edit_distance(const Descriptor& a, const Descriptor& b) {
    const bool has_fewer = a.skips.size() <= b.skips.size();
    return alignment_cost(a.layers, b.layers) +
           (has_fewer ? skips_cost(a.skips, b.skips) : skips_cost(b.skips, a.skips));
}

double cheapest_assignment(std::span<const double> costs, std::size_t rows, std::size_t columns) {
    // Shortest augmenting paths with potentials (Jonker and Volgenant 1987). Row and column 0 are
    // auxiliary.
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    std::vector<double> row_potential(rows + 1), column_potential(columns + 1);
    std::vector<std::size_t> row_of(columns + 1), way(columns + 1);
    for (std::size_t row = 1; row <= rows; ++row) {
        row_of[0] = row;
        std::size_t column = 0;
        std::vector<double> smallest(columns + 1, kInfinity);
        std::vector<bool> is_used(columns + 1);
        do {
            is_used[column] = true;
            const std::size_t current = row_of[column];
            std::size_t next = 0;
            double delta = kInfinity;
            for (std::size_t j = 1; j <= columns; ++j) {
                if (is_used[j]) continue;
                const double reduced = costs[(current - 1) * columns + j - 1] -
                                       row_potential[current] - column_potential[j];
                if (reduced < smallest[j]) smallest[j] = reduced, way[j] = column;
                if (smallest[j] < delta) delta = smallest[j], next = j;
            }
            for (std::size_t j = 0; j <= columns; ++j) {
                if (is_used[j]) {
                    row_potential[row_of[j]] += delta;
                    column_potential[j] -= delta;
                } else {
                    smallest[j] -= delta;
                }
            }
            column = next;
        } while (row_of[column] != 0);
        for (; column != 0; column = way[column]) row_of[column] = row_of[way[column]];
    }
    double sum = 0;
    for (std::size_t j = 1; j <= columns; ++j) {
        if (row_of[j] != 0) sum += costs[(row_of[j] - 1) * columns + j - 1];
    }
    return sum;
}

}  // namespace hpcai::search
