// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <hpcai/base/error.hpp>
#include <hpcai/base/philox.hpp>
#include <hpcai/morphs/morph.hpp>

#include "models/networks.hpp"

namespace hpcai::morphs {

/// A ResNet with one block in each stage for images of 64 x 64 pixels; the last stage has 2 x 2.
inline models::ResNet50 small_root(std::int64_t batch = 4) {
    return {.batch = batch,
            .image_size = 64,
            .classes = 5,
            .label_smoothing = 0.1,
            .backbone = {.width = 8, .blocks = {1, 1, 1, 1}}};
}

/// The morphs of one kind.
inline std::vector<Morph> morphs_of(const graph::Graph& graph, MorphKind kind) {
    std::vector<Morph> chosen = legal_morphs(graph, true);
    std::erase_if(chosen, [&](const Morph& morph) { return morph.kind != kind; });
    return chosen;
}

inline std::string to_string(const Morph& morph) {
    return fmt::format("{} {} {} {}", name_of(morph.kind), morph.node, morph.end, morph.amount);
}

/// Draws a kind that the graph allows, then one of its morphs.
inline Morph random_morph(const graph::Graph& graph, bool has_plain, CounterStream& stream) {
    for (;;) {
        const auto morphs = morphs_of(graph, kMorphNames[stream.below(has_plain ? 5 : 4)].kind);
        if (!morphs.empty()) return morphs[stream.below(static_cast<std::uint32_t>(morphs.size()))];
    }
}

/// `count` random edits, each legal after the ones before it.
inline std::vector<Morph> random_script(const graph::Graph& root, std::uint32_t count,
                                        std::uint32_t number, bool has_plain = false) {
    CounterStream stream(2026, RandomPurpose::test, number, count);
    graph::Graph graph = root;
    std::vector<Morph> script;
    for (std::uint32_t position = 0; position < count; ++position) {
        script.push_back(random_morph(graph, has_plain, stream));
        graph = apply(graph, script.back(), position, 0).graph;
    }
    return script;
}

}  // namespace hpcai::morphs
