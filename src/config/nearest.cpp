// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <utility>

#include <fmt/core.h>

#include <hpcai/config/nearest.hpp>

namespace hpcai::config {
namespace {

char lower(char letter) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
}

/// Names of values and keys in other programs. By spelling, gpu would be corrected to cpu.
constexpr std::pair<std::string_view, std::string_view> kSynonyms[] = {
    {"gpu", "cuda"},          {"nvidia", "cuda"},     {"x86", "cpu"},
    {"float32", "fp32"},      {"float", "fp32"},      {"single", "fp32"},
    {"float16", "fp16"},      {"half", "fp16"},       {"bfloat16", "bf16"},
    {"amp", "mixed"},         {"hybrid", "mixed"},    {"tensor", "model"},
    {"ddp", "data"},          {"ring", "all_reduce"}, {"2d_torus", "torus_2d"},
    {"2d-torus", "torus_2d"}, {"torus", "torus_2d"},  {"num_workers", "decode_threads"},
    {"lr", "learning_rate"},  {"wd", "weight_decay"}};

}  // namespace

std::string_view resolve_synonym(std::string_view given) {
    for (const auto& [synonym, name] : kSynonyms)
        if (edit_distance(synonym, given) == 0) return name;
    return given;
}

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
            if (i > 1 && j > 1 && same(i - 1, j - 2) && same(i - 2, j - 1))
                cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
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
    if (!best.empty() || given.size() < 3) return best;
    const auto begins = std::ranges::find_if(candidates, [&](const std::string& candidate) {
        return edit_distance(given, std::string_view(candidate).substr(0, given.size())) == 0;
    });
    return begins == candidates.end() ? "" : *begins;
}

std::string did_you_mean(std::string_view given, const std::vector<std::string>& candidates) {
    const auto known = std::ranges::find(candidates, resolve_synonym(given));
    const std::string best = known == candidates.end() ? nearest(given, candidates) : *known;
    return best.empty() ? "" : fmt::format("; did you mean '{}'?", best);
}

}  // namespace hpcai::config
