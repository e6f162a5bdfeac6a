// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <hpcai/evaluation/top_k.hpp>

/// Tests that tell two runs apart. Draws are the same each time.
namespace hpcai::evaluation {

/// What can be said of the second result against the first.
enum class Judgement { same, faster, slower, better, worse, unclear };

/// Two-sided p of McNemar's test in its exact form (Q. McNemar, Psychometrika 12 (1947) 153-157):
/// of the samples that one of two classifiers alone gets right, `first` and `second` are each
/// one's; under the null hypothesis each is a toss of a coin. 1 where there is none.
double mcnemar_p(std::int64_t first, std::int64_t second);

/// Two-sided p of the rank-sum test in its exact form, ties sharing their mean rank (F. Wilcoxon,
/// Biometrics Bulletin 1 (1945) 80-83): how often a random division of all values into two sets of
/// these sizes has rank sums as unequal. Neither set is empty; at most 200 values in all.
double rank_sum_p(const std::vector<double>& first, const std::vector<double>& second);

/// The seconds of each step of one run, group by group.
using StepSeconds = std::vector<std::vector<double>>;

/// The 95 % interval of (time of `second`) / (time of `first`) by the percentile bootstrap of
/// circular blocks (D. N. Politis and J. P. Romano, in Exploring the Limits of Bootstrap, Wiley
/// 1992, 263-270): 1000 times every group's steps are drawn anew, in blocks of the square root of
/// their number, and the run takes as long as its slowest group. Nothing where a run has a group
/// without two steps or no time has passed, and where the ratio that was observed lies outside: the
/// draws then do not describe these runs.
std::optional<Interval> time_ratio_95(const StepSeconds& first, const StepSeconds& second);

/// The 95 % interval of a difference by the paired bootstrap over `images` test images (Efron and
/// Tibshirani 1993, chapter 13): `difference` gets how often each image is in a draw, and says
/// nothing where it has no value. Nothing where no draw has one.
std::optional<Interval> paired_interval_95(
    std::int64_t images, int draws,
    const std::function<std::optional<double>(std::span<const std::uint32_t> times)>& difference);

}  // namespace hpcai::evaluation
