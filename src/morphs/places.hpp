// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/morphs/morph.hpp>

namespace hpcai::morphs {

using graph::NodeId;
using graph::ValueId;

/// A graph with the readers of its values.
class Readers {
public:
    explicit Readers(const graph::Graph& graph);

    const graph::Graph& graph() const { return graph_; }
    const graph::Node& node(NodeId id) const { return graph_.nodes()[id]; }
    /// The operation of a node, if it has this type; else null.
    template <typename Operation>
    const Operation* as(NodeId id) const {
        return id == graph::kNoNode ? nullptr : std::get_if<Operation>(&node(id).operation);
    }
    /// The node with this name; kNoNode if there is none.
    NodeId find(const std::string& name) const;
    const std::vector<NodeId>& of(ValueId value) const { return readers_[value]; }
    /// The only node that reads the node's output; kNoNode if none or several read it, or if it is
    /// an output of the graph.
    NodeId only_reader(NodeId id) const;
    /// Whether the graph's caller reads the node's output.
    bool is_output(NodeId id) const;
    /// Whether this node alone uses each of its parameters.
    bool owns_parameters(NodeId id) const;

private:
    const graph::Graph& graph_;
    std::vector<std::vector<NodeId>> readers_;  // [value]
    std::vector<int> uses_;                     // [parameter]
};

/// The first BatchNorm that is trained and not fused; null if there is none. New norms are like it.
const ops::BatchNorm* plain_norm(const graph::Graph& graph);

/// The nodes that an edit changes or follows.
struct Place {
    NodeId node = graph::kNoNode;
    NodeId end = graph::kNoNode;  // of a skip
};

/// Returns the only amount with which a graph allows an edit of this kind; nothing if it does not.
std::optional<std::int64_t> legal_amount(const Readers& readers, MorphKind kind, Place place);

}  // namespace hpcai::morphs
