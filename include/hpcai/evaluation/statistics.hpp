// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <hpcai/base/philox.hpp>
#include <hpcai/evaluation/top_k.hpp>

/// Statistical tests between two runs. Random draws are always the same.
namespace hpcai::evaluation {

/// How often each image occurs in a draw of `images` images with replacement.
std::vector<std::uint32_t> draw_images(std::int64_t images, CounterStream stream);

/// The 2.5 % and 97.5 % quantiles of some draws; nothing for an empty list.
std::optional<Interval> interval_of_draws(std::vector<double> values);

/// The second result compared with the first.
enum class Judgement { same, faster, slower, better, worse, unclear };

/// Two-sided p-value of McNemar's exact test (Q. McNemar, Psychometrika 12 (1947) 153-157). `first`
/// samples are right only in the first of two classifiers, `second` only in the second. Under the
/// null hypothesis both cases are equally likely. 1 if both are 0.
double mcnemar_p(std::int64_t first, std::int64_t second);

/// Two-sided p-value of the exact rank-sum test, where ties share their mean rank (F. Wilcoxon,
/// Biometrics Bulletin 1 (1945) 80-83): the share of random divisions of all values into two sets
/// of these sizes whose rank sums are at least as unequal. Neither set is empty; at most 200 values
/// in total.
double rank_sum_p(const std::vector<double>& first, const std::vector<double>& second);

/// The seconds of each step of one run, [group][step].
using StepSeconds = std::vector<std::vector<double>>;

/// 95 % interval of (time of `second`) / (time of `first`) by the percentile bootstrap of circular
/// blocks (D. N. Politis and J. P. Romano, in Exploring the Limits of Bootstrap, Wiley 1992,
/// 263-270). In each of 1000 replicates, every group's steps are drawn again in blocks of the
/// square root of their number, and the run takes as long as its slowest group. Nothing if a group
/// has fewer than two steps or only steps of 0 s. Also nothing if the observed ratio is outside the
/// interval, because the draws then do not describe these runs.
std::optional<Interval> time_ratio_95(const StepSeconds& first, const StepSeconds& second);

/// 95 % interval of a difference by the paired bootstrap with `draws` draws of `images` test images
/// (Efron and Tibshirani 1993, chapter 13). `difference` gets how often each image is in a draw and
/// returns nothing if the difference is undefined. Nothing if it is undefined for all draws.
std::optional<Interval> paired_interval_95(
    std::int64_t images, int draws,
    const std::function<std::optional<double>(std::span<const std::uint32_t> times)>& difference);

}  // namespace hpcai::evaluation
