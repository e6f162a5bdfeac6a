// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include <hpcai/base/error.hpp>
#include <hpcai/plan/parallelism_controller.hpp>

namespace hpcai::plan {
namespace {

/// "4 or 8": the multiples of `unit` around `value`.
std::string nearest_multiples(int value, int unit) {
    const std::int64_t below = std::int64_t{value} / unit * unit;
    if (below == 0) return fmt::format("{}", unit);
    return fmt::format("{} or {}", below, below + unit);
}

void check_both(int groups, int degree, int ranks) {
    const std::int64_t needed = std::int64_t{groups} * degree;
    if (needed == ranks) return;
    std::string remedy = fmt::format("start with `mpirun -np {}`", needed);
    if (ranks % groups == 0) remedy += fmt::format(", or set bagging.P_degree: {}", ranks / groups);
    if (ranks % degree == 0) remedy += fmt::format(", or set bagging.M: {}", ranks / degree);
    throw Error(ExitCode::launch,
                fmt::format("bagging.M={} x bagging.P_degree={} needs {} ranks (eq. 5), got {}; {}",
                            groups, degree, needed, ranks, remedy));
}

Layout from_configuration(const config::BaggingConfig& bagging, int ranks, int ranks_per_node) {
    if (bagging.groups && bagging.degree) {
        check_both(*bagging.groups, *bagging.degree, ranks);
        return {ranks, *bagging.groups, *bagging.degree};
    }
    if (bagging.groups) {
        const int groups = *bagging.groups;
        require(ranks % groups == 0, ExitCode::launch,
                "bagging.M={} does not divide the {} ranks (eq. 5); start with {} ranks, or change "
                "bagging.M",
                groups, ranks, nearest_multiples(ranks, groups));
        return {ranks, groups, ranks / groups};
    }
    if (bagging.degree) {
        const int degree = *bagging.degree;
        require(ranks % degree == 0, ExitCode::launch,
                "bagging.P_degree={} does not divide the {} ranks (eq. 5); start with {} ranks, or "
                "change bagging.P_degree",
                degree, ranks, nearest_multiples(ranks, degree));
        return {ranks, ranks / degree, degree};
    }
    const int degree = std::min(ranks, ranks_per_node);
    require(
        ranks % degree == 0, ExitCode::launch,
        "bagging.M and bagging.P_degree are both `auto`, which makes P_degree the {} ranks of a "
        "node, but that does not divide the {} ranks (eq. 5); start with {} ranks, or set "
        "bagging.M or bagging.P_degree",
        degree, ranks, nearest_multiples(ranks, degree));
    return {ranks, ranks / degree, degree};
}

}  // namespace

namespace {

/// Spans are parts of a rank's share of a batch, or the shares of several ranks.
void check_statistics_span(const config::TrainingConfig& training, int degree) {
    const int share = training.batch_size / degree;
    const int span = training.batch_norm_samples.value_or(share);
    const bool is_part = span >= 1 && share % span == 0;
    const bool is_shares = span >= 1 && span % share == 0 && training.batch_size % span == 0;
    require(is_part || is_shares, ExitCode::usage,
            "training.batch_norm_samples: expected a divisor of the {} samples that each of the {} "
            "ranks of a group has of a batch, or k times as many for a k that divides the ranks, "
            "got {}",
            share, degree, span);
}

}  // namespace

Layout make_layout(const config::BaggingConfig& bagging, const config::TrainingConfig& training,
                   int ranks, int ranks_per_node) {
    require(ranks >= 1 && ranks_per_node >= 1, ExitCode::launch,
            "a layout needs at least 1 rank and 1 rank per node, got {} and {}", ranks,
            ranks_per_node);
    require(bagging.groups.value_or(1) >= 1, ExitCode::usage,
            "bagging.M: expected at least 1, got {}", bagging.groups.value_or(1));
    require(bagging.degree.value_or(1) >= 1, ExitCode::usage,
            "bagging.P_degree: expected at least 1, got {}", bagging.degree.value_or(1));
    const Layout layout = from_configuration(bagging, ranks, ranks_per_node);
    require(training.batch_size >= 1 && training.batch_size % layout.degree == 0, ExitCode::launch,
            "training.batch_size={} cannot be shared evenly by P_degree={} ranks; set "
            "training.batch_size: {}, or change bagging.P_degree",
            training.batch_size, layout.degree,
            nearest_multiples(std::max(training.batch_size, 0), layout.degree));
    check_statistics_span(training, layout.degree);
    return layout;
}

int statistics_ranks(const config::TrainingConfig& training, const Layout& layout) {
    const int share = training.batch_size / layout.degree;
    return std::max(1, training.batch_norm_samples.value_or(share) / share);
}

}  // namespace hpcai::plan
