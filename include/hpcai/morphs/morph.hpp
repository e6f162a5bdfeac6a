// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <hpcai/graph/graph.hpp>

/// Edits of a classifier's graph that preserve the function it computes. A child inherits the
/// weights of its parent, and its outputs equal the parent's in inference and in training, up to
/// rounding; deeper_plain changes the outputs in training. No edit changes the number of channels
/// of the operands of an addition.
namespace hpcai::morphs {

enum class MorphKind {
    // Doubles the filters of `node`, a convolution that feeds only convolutions (after norm and
    // ReLU). New filters copy random old ones; weights that read them are zero at first.
    wider,
    // Enlarges the kernel of `node`, a convolution, by two pixels and its padding by one. The new
    // weights are zero at first.
    kernel,
    // Adds norm(convolution(x)) to the output of `end`, a BatchNorm, where x is the output of
    // `node`, an earlier ReLU. The convolution is 1 x 1 with stride 2^n; gamma is zero at first.
    skip,
    // Replaces the output x of `node`, a ReLU, by relu(x + norm(conv(relu(norm(conv(x)))))), with
    // 3 x 3, then 1 x 1 convolutions. The last gamma is zero at first.
    deeper,
    // Replaces the output x of `node`, a ReLU, by relu(norm(conv(x))) with a 3 x 3 convolution that
    // copies each channel. Preserves the function in inference only: in training, the BatchNorm
    // normalizes x.
    deeper_plain,
};

struct MorphName {
    MorphKind kind;
    std::string_view name;
};
inline constexpr std::array kMorphNames{
    MorphName{MorphKind::wider, "wider"}, MorphName{MorphKind::kernel, "kernel"},
    MorphName{MorphKind::skip, "skip"}, MorphName{MorphKind::deeper, "deeper"},
    MorphName{MorphKind::deeper_plain, "deeper_plain"}};

std::string_view name_of(MorphKind kind);

/// One edit of a graph, by names of nodes of the unfused graph.
struct Morph {
    MorphKind kind = MorphKind::wider;
    std::string node;
    std::string end;          // of a skip; otherwise empty
    std::int64_t amount = 0;  // by kind: filters, kernel size, stride, filters of the first conv

    bool operator==(const Morph&) const = default;
};

/// The most morphs of one kind that legal_morphs() returns.
inline constexpr std::size_t kMaxPlaces = 75;
/// The most elements of all parameters of a child.
inline constexpr std::int64_t kMaxParameters = std::int64_t{1} << 30;

/// Returns the possible edits of an unfused graph, in the order of MorphKind and then of the graph;
/// at most kMaxPlaces of each kind, chosen at equal distances. The edits do not depend on the batch
/// size. A child may have too many FLOPs or need too much memory; the caller checks that.
/// The kind deeper_plain is included only if `has_plain`.
std::vector<Morph> legal_morphs(const graph::Graph& graph, bool has_plain = false);

/// How a parameter of a child gets its initial values.
enum class Inheritance {
    copied,    // those of the parent's parameter `parent`
    gathered,  // the filters or channels Origin::channels of the parent's parameter
    padded,    // the parent's parameter in the middle of the kernel and the first input channels;
               // zeros elsewhere
    identity,  // of a convolution whose BatchNorm, with mean 0 and variance 1, returns its input
    initial,   // as in a new model: filters drawn, gamma 1 or 0, beta 0 (graph::initial_values)
};

/// The origin of a parameter, or of a BatchNorm's running statistics. Running statistics are never
/// padded; initial ones have means 0 and variances 1.
struct Origin {
    Inheritance rule = Inheritance::copied;
    std::int32_t parent = -1;            // index of the parent's parameter or statistics; -1: none
    std::vector<std::int64_t> channels;  // for `gathered`: the parent's channel of each channel
};

/// The graph that an edit makes of another.
struct Child {
    graph::Graph graph;
    std::vector<Origin> parameters;  // one for each of graph.parameters()
    std::vector<Origin> statistics;  // one for each of graph.statistics()
};

/// Applies one edit. New nodes are named after `position`, the index of the edit in its script:
/// "edit3.conv1". `seed` draws the filters that `wider` copies; graph and names do not depend on
/// it. Throws Error(data) with `position` for an edit that the graph does not allow. Every edit of
/// legal_morphs() is allowed.
Child apply(const graph::Graph& parent, const Morph& morph, std::uint32_t position,
            std::uint64_t seed);

/// Applies an edit script to `root` in order. Throws as apply().
graph::Graph apply_all(const graph::Graph& root, std::span<const Morph> script);

}  // namespace hpcai::morphs
