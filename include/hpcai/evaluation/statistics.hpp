// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include <hpcai/base/philox.hpp>
#include <hpcai/evaluation/top_k.hpp>

/// Statistical tests between two runs. Random draws have fixed seeds, so results are reproducible.
namespace hpcai::evaluation {

/// Returns how often each image occurs in a draw of `images` images with replacement.
std::vector<std::uint32_t> draw_images(std::int64_t images, CounterStream stream);

/// Returns the 2.5 % and 97.5 % quantiles of `values`; nothing for an empty list.
std::optional<Interval> interval_of_draws(std::vector<double> values);

/// How the second of two results compares with the first.
enum class Judgement { same, faster, slower, better, worse, more, less, unclear };

/// Two-sided p-value of McNemar's exact test (Q. McNemar, Psychometrika 12 (1947) 153-157). Only
/// the first classifier is correct on `only_first` samples, only the second on `only_second`. Under
/// the null hypothesis both cases are equally likely. 1 if both numbers are 0.
double mcnemar_p(std::int64_t only_first, std::int64_t only_second);

/// Two-sided p-value of the exact rank-sum test, where ties share their mean rank (F. Wilcoxon,
/// Biometrics Bulletin 1 (1945) 80-83): the fraction of all divisions of the values into two sets
/// of these sizes, in which the rank sum of the first set is at least as far from the mean rank sum
/// as the observed one. Neither set may be empty; at most 200 values in total.
double rank_sum_p(const std::vector<double>& first, const std::vector<double>& second);

/// The seconds of each step of one run, [group][step].
using StepSeconds = std::vector<std::vector<double>>;

/// 95 % interval of (time of `second`) / (time of `first`) by the percentile bootstrap of circular
/// blocks (D. N. Politis and J. P. Romano, in Exploring the Limits of Bootstrap, Wiley 1992,
/// 263-270). Each of 1000 replicates draws the n steps of every group in blocks of sqrt(n) steps; a
/// run takes as long as its slowest group. Returns nothing if a group has fewer than two steps or
/// only steps of 0 s, or if the observed ratio is outside the interval. In the last case, the draws
/// do not describe these runs.
std::optional<Interval> time_ratio_95(const StepSeconds& first, const StepSeconds& second);

inline constexpr std::uint32_t kReplicates = 1000;  // draws of a bootstrap
inline constexpr std::uint64_t kDrawSeed = 2;       // the default seed of draws

/// 95 % interval of a statistic by the percentile bootstrap (Efron and Tibshirani 1993, chapter 13)
/// with kReplicates draws of `images` test images. `statistic` is called with the number of times
/// that each image is drawn. Skips draws for which it returns nothing; returns nothing if all draws
/// are skipped.
std::optional<Interval> image_interval_95(
    std::int64_t images,
    const std::function<std::optional<double>(std::span<const std::uint32_t> times)>& statistic,
    std::uint64_t seed = kDrawSeed);

}  // namespace hpcai::evaluation
