// SPDX-License-Identifier: Apache-2.0
#include "draw_morph.hpp"

#include <map>
#include <vector>

namespace hpcai::search {

std::optional<morphs::Morph> draw_morph(const graph::Graph& graph, bool has_plain,
                                        CounterStream& draws) {
    std::map<morphs::MorphKind, std::vector<morphs::Morph>> places;
    for (morphs::Morph& morph : morphs::legal_morphs(graph, has_plain)) {
        places[morph.kind].push_back(std::move(morph));
    }
    std::uint32_t skipped = draws.below(static_cast<std::uint32_t>(places.size()));
    for (const auto& [kind, morphs] : places) {
        if (skipped-- > 0) continue;
        return morphs[draws.below(static_cast<std::uint32_t>(morphs.size()))];
    }
    return std::nullopt;
}

}  // namespace hpcai::search
