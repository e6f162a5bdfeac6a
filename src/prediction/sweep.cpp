// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/prediction/estimate.hpp>

#include "estimate_parts.hpp"

namespace hpcai::prediction {
namespace {

/// Returns the FLOP/s of all ranks that train `groups` models on `degree` ranks each.
Quantity speed(const config::Config& config, EstimateRequest request, int groups, int degree) {
    request.ranks = groups * degree;
    config::Config grouped = config;
    grouped.bagging.groups = groups;
    grouped.bagging.degree = degree;
    try {
        const PlanRecord predicted = estimate(grouped, request);
        if (!predicted.time.step_seconds.value) return predicted.time.step_seconds;
        return {groups * predicted.work.model_flops.step / *predicted.time.step_seconds.value, ""};
    } catch (const Error& error) {
        if (error.code() != ExitCode::launch) throw;
        return {std::nullopt, error.what()};
    }
}

Quantity efficiency(const Quantity& flops, int ranks, const Quantity& one_rank) {
    if (!flops.value) return flops;
    if (!one_rank.value) return one_rank;
    return {*flops.value / (ranks * *one_rank.value), ""};
}

class Sweeper {
public:
    Sweeper(const config::Config& config, const EstimateRequest& request)
        : config_(config), request_(request) {
        require(request.roofline.has_value(), ExitCode::usage,
                "--sweep: expected --roofline FILE or --machine FILE with rates, got none");
        // All points have the same number of ranks per node, so that nodes are equally loaded.
        degree_ = config.bagging.degree.value_or(1);
        if (!request_.ranks_per_node)
            request_.ranks_per_node = measured_ranks_per_node(request).value_or(degree_);
        samples_ = std::max(1, config.training.batch_size / degree_);
        config_.parallel = {};  // Fig. 9 of the paper has data parallelism only
        // Efficiency is relative to a rank that trains its own model on a node full of such ranks.
        const int ranks = *request_.ranks_per_node;
        one_rank_ = speed(one_model(1), request_, ranks, 1);
        if (one_rank_.value) *one_rank_.value /= ranks;
    }

    SweepRecord sweep(const SweepRange& range) {
        SweepRecord record;
        for (std::int64_t ranks = range.first; ranks < range.last; ranks *= 2) {
            record.points.push_back(point(static_cast<int>(ranks)));
        }
        record.points.push_back(point(range.last));
        config::Config base_config = one_model(1);
        EstimateRequest base_request = request_;
        base_request.ranks = std::min(*request_.ranks_per_node, range.last);
        base_config.bagging.groups = base_request.ranks;
        const PlanRecord base = estimate(base_config, base_request);
        record.model = base.model;
        record.source = base.time.source;
        record.degree = degree_;
        record.samples_per_rank = samples_;
        record.memory_per_rank = base.memory_per_rank;
        record.assumptions = base.assumptions;
        return record;
    }

private:
    config::Config one_model(int ranks) const {
        config::Config config = config_;
        config.training.batch_size = samples_ * ranks;
        config.bagging.groups = config.bagging.degree = std::nullopt;
        if (ranks == 1) config.bagging.groups = config.bagging.degree = 1;
        return config;
    }

    SweepPoint point(int ranks) const {
        SweepPoint point{.ranks = ranks};
        point.bagging_flops = ranks % degree_ == 0
                                  ? speed(one_model(degree_), request_, ranks / degree_, degree_)
                                  : no_value(fmt::format("P_degree {} does not divide {}", degree_,
                                                         counted(ranks, "rank")));
        const bool fits_int = ranks <= std::numeric_limits<int>::max() / samples_;
        point.data_parallel_flops =
            fits_int ? speed(one_model(ranks), request_, 1, ranks)
                     : Quantity{std::nullopt, "the batch exceeds the largest integer"};
        point.bagging_efficiency = efficiency(point.bagging_flops, ranks, one_rank_);
        point.data_parallel_efficiency = efficiency(point.data_parallel_flops, ranks, one_rank_);
        return point;
    }

    config::Config config_;
    EstimateRequest request_;
    int degree_ = 1;
    int samples_ = 1;
    Quantity one_rank_;  // FLOP/s
};

std::string cell(const Quantity& flops, const Quantity& share) {
    if (!flops.value) return "unknown";
    return fmt::format("{:>12} {:>8}", format_si(*flops.value, "FLOPS"),
                       share.value ? format_percent(*share.value) : "unknown");
}

}  // namespace

SweepRecord sweep(const config::Config& config, const EstimateRequest& request,
                  const SweepRange& range) {
    constexpr int kMaxRanks = 1'000'000;
    require(range.first >= 1 && range.first <= range.last && range.last <= kMaxRanks,
            ExitCode::usage, "--sweep: expected ranks=A..B with 1 <= A <= B <= {}, got {}..{}",
            kMaxRanks, range.first, range.last);
    return Sweeper(config, request).sweep(range);
}

std::string to_text(const SweepRecord& sweep) {
    const std::string title = fmt::format(
        "predicted speed of {}: {} per rank, base models of {}; nothing was run", sweep.model,
        counted(sweep.samples_per_rank, "sample"), counted(sweep.degree, "rank"));
    std::string text = fmt::format("{}\n{}\n\n{:>9} {:>21} {:>21}\n", wrap(title, 2),
                                   wrap(sweep.source, 2), "ranks", "bagging", "one model");
    std::string reasons;
    for (const SweepPoint& point : sweep.points) {
        for (const Quantity* one : {&point.bagging_flops, &point.bagging_efficiency,
                                    &point.data_parallel_flops, &point.data_parallel_efficiency}) {
            const std::string line = wrap("unknown: " + one->reason, 4) + "\n";
            if (!one->value && reasons.find(line) == reasons.npos) reasons += line;
        }
        text += fmt::format("{:>9} {:>21} {:>21}\n", point.ranks,
                            cell(point.bagging_flops, point.bagging_efficiency),
                            cell(point.data_parallel_flops, point.data_parallel_efficiency));
    }
    text += reasons + "\nassumed\n";
    for (const std::string& assumption : sweep.assumptions)
        text += wrap("  " + assumption, 4) + "\n";
    return text;
}

}  // namespace hpcai::prediction
