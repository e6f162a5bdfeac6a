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

/// A name that other programs use for a value. Its spelling may be nearer to a wrong value, as gpu
/// is to cpu.
struct OtherName {
    std::string_view other, name;
};
constexpr std::array kOtherNames{
    OtherName{"gpu", "cuda"},          OtherName{"nvidia", "cuda"},
    OtherName{"x86", "cpu"},           OtherName{"float32", "fp32"},
    OtherName{"float", "fp32"},        OtherName{"single", "fp32"},
    OtherName{"float16", "fp16"},      OtherName{"half", "fp16"},
    OtherName{"bfloat16", "bf16"},     OtherName{"amp", "mixed"},
    OtherName{"hybrid", "mixed"},      OtherName{"tensor", "model"},
    OtherName{"ddp", "data"},          OtherName{"ring", "all_reduce"},
    OtherName{"2d_torus", "torus_2d"}, OtherName{"2d-torus", "torus_2d"},
    OtherName{"torus", "torus_2d"},
};

std::string_view usual_name(std::string_view given) {
    const auto* found = std::ranges::find_if(
        kOtherNames, [&](const OtherName& row) { return edit_distance(row.other, given) == 0; });
    return found == kOtherNames.end() ? given : found->name;
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
    int least = std::max(1, static_cast<int>(given.size()) / 3) + 1;
    std::string best;
    for (const std::string& candidate : candidates) {
        const int distance = edit_distance(given, candidate);
        if (distance >= least) continue;
        least = distance;
        best = candidate;
    }
    return best;
}

std::string did_you_mean(std::string_view given, const std::vector<std::string>& candidates) {
    const auto known = std::ranges::find(candidates, usual_name(given));
    const std::string best = known == candidates.end() ? nearest(given, candidates) : *known;
    return best.empty() ? "" : fmt::format("; did you mean '{}'?", best);
}

}  // namespace hpcai::config
