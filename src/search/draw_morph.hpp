// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <hpcai/base/philox.hpp>
#include <hpcai/morphs/morph.hpp>

namespace hpcai::search {

/// Draws a kind of morph that the graph allows, then one of its places, each with equal
/// probability; nothing if the graph allows none. `has_plain` as for morphs::legal_morphs().
std::optional<morphs::Morph> draw_morph(const graph::Graph& graph, bool has_plain,
                                        CounterStream& draws);

}  // namespace hpcai::search
