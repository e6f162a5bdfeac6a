// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/core.h>

#include <hpcai/config/nearest.hpp>

namespace hpcai::config {
namespace {

char lower(char letter) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
}

/// A name that other programs use for a value. A wrong value may be spelled more similarly: cpu is
/// nearer to gpu than cuda is.
struct Synonym {
    std::string_view synonym, name;
};
constexpr std::array kSynonyms{
    Synonym{"gpu", "cuda"},          Synonym{"nvidia", "cuda"},     Synonym{"x86", "cpu"},
    Synonym{"float32", "fp32"},      Synonym{"float", "fp32"},      Synonym{"single", "fp32"},
    Synonym{"float16", "fp16"},      Synonym{"half", "fp16"},       Synonym{"bfloat16", "bf16"},
    Synonym{"amp", "mixed"},         Synonym{"hybrid", "mixed"},    Synonym{"tensor", "model"},
    Synonym{"ddp", "data"},          Synonym{"ring", "all_reduce"}, Synonym{"2d_torus", "torus_2d"},
    Synonym{"2d-torus", "torus_2d"}, Synonym{"torus", "torus_2d"},
};

std::string_view resolve_synonym(std::string_view given) {
    const auto* found = std::ranges::find_if(
        kSynonyms, [&](const Synonym& row) { return edit_distance(row.synonym, given) == 0; });
    return found == kSynonyms.end() ? given : found->name;
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
    const auto same = [&](std::size_t i, std::size_t j) { return lower(a[i]) == lower(b[j]); };
    std::vector<std::vector<int>> cost(a.size() + 1, std::vector<int>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) {
        for (std::size_t j = 0; j <= b.size(); ++j) {
            if (i == 0 || j == 0) {
                cost[i][j] = static_cast<int>(i + j);
                continue;
            }
            cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1,
                                   cost[i - 1][j - 1] + (same(i - 1, j - 1) ? 0 : 1)});
            if (i > 1 && j > 1 && same(i - 1, j - 2) && same(i - 2, j - 1)) {
                cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
            }
        }
    }
    return cost[a.size()][b.size()];
}

std::string nearest(std::string_view given, const std::vector<std::string>& candidates) {
    if (given.size() > 64) return "";
    int best_distance = std::max(1, static_cast<int>(given.size()) / 3) + 1;
    std::string best;
    for (const std::string& candidate : candidates) {
        const int distance = edit_distance(given, candidate);
        if (distance >= best_distance) continue;
        best_distance = distance;
        best = candidate;
    }
    return best;
}

std::string did_you_mean(std::string_view given, const std::vector<std::string>& candidates) {
    const auto known = std::ranges::find(candidates, resolve_synonym(given));
    const std::string best = known == candidates.end() ? nearest(given, candidates) : *known;
    return best.empty() ? "" : fmt::format("; did you mean '{}'?", best);
}

}  // namespace hpcai::config
