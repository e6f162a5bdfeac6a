// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <hpcai/evaluation/top_k.hpp>

#include "support/largest_error.hpp"
#include "support/reference_json.hpp"

/// Against tests/data/reference/metrics_evaluation.json, by scripts/reference/metric_cases.py.
namespace hpcai::evaluation {
namespace {

using nlohmann::json;

const json& metric_cases() {
    static const json kReference = tests::read_reference_json("metrics_evaluation.json");
    return kReference;
}

/// Counts the classes of all rows that top_k and predicted_class rank differently.
void compare_ranks(const json& cases, tests::LargestError& error) {
    for (std::size_t row = 0; row < cases["scores"].size(); ++row) {
        const std::vector<float> scores = cases["scores"][row];
        const std::vector<std::int32_t> best = cases["top_5"][row];
        error.add(predicted_class(scores) != best[0], fmt::format("row {}", row));
        for (std::int32_t label = 0; label < static_cast<std::int32_t>(scores.size()); ++label) {
            const TopK got =
                top_k(scores, std::vector{label}, static_cast<std::int64_t>(scores.size()));
            const bool among_five = std::ranges::find(best, label) != best.end();
            error.add(got != TopK{label == best[0], among_five, 1},
                      fmt::format("row {}, label {}", row, label));
        }
    }
}

TEST(TopKCount, RanksAsTorchTopkWithoutTies) {
    tests::LargestError error("Top-1 and Top-5 that differ from torch.topk", 0);
    const json& cases = metric_cases()["top_k"];
    compare_ranks(cases, error);
    std::vector<float> all;
    for (const json& row : cases["scores"]) {
        const std::vector<float> scores = row;
        all.insert(all.end(), scores.begin(), scores.end());
    }
    const std::vector<std::int32_t> labels = cases["labels"];
    const TopK got = top_k(all, labels, static_cast<std::int64_t>(all.size() / labels.size()));
    error.add(got != TopK{cases["correct_1"], cases["correct_5"], 16}, "counts of all rows");
}

TEST(TopKCount, RanksTiesAsSortingByScoreAndThenClassDoes) {
    tests::LargestError error("Top-1 and Top-5 with ties that differ from sorting in Python", 0);
    compare_ranks(metric_cases()["top_k_ties"], error);
}

TEST(WilsonInterval, IsTheRootsOfItsQuadraticEquationInDecimals) {
    // double: a share of 1e-9 loses digits in centre - half width; the absolute error is 1e-16
    tests::LargestError error("Wilson interval against its equation in 50 digits, fp64", 4e-16);
    for (const json& wanted : metric_cases()["wilson"]) {
        const Interval got = wilson_interval_95(wanted["correct"], wanted["samples"]);
        error.add(std::abs(got.low - wanted["low"].get<double>()), "low of " + wanted.dump());
        error.add(std::abs(got.high - wanted["high"].get<double>()), "high of " + wanted.dump());
    }
}

}  // namespace
}  // namespace hpcai::evaluation
