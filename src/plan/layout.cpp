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

/// What the two other degrees leave of P_degree for `name`.
int rest_of(int degree, const char* name, int one, int other) {
    const std::int64_t taken = std::max<std::int64_t>(1, std::int64_t{one} * other);
    require(taken <= degree, ExitCode::launch,
            "the other degrees of parallel ask for {} ranks of P_degree={} and leave none for "
            "parallel.{}; make one smaller, or leave it auto",
            taken, degree, name);
    return static_cast<int>(degree / taken);
}

/// P_degree in stages, their parts and the ranks of each.
void split_degree(const config::ParallelConfig& parallel, Layout& layout) {
    const auto& [mode, data, stages, micro_batches, schedule, parts] = parallel;
    if (mode == config::ParallelMode::mixed) {
        const int given = data.has_value() + stages.has_value() + parts.has_value();
        require(given >= 2, ExitCode::usage,
                "parallel.mode mixed: expected two or three of parallel.data_degree, "
                "parallel.pipeline_degree and parallel.model_degree, got {}",
                given);
    }
    const bool has_rest_in_stages =
        mode == config::ParallelMode::pipeline || (mode == config::ParallelMode::mixed && parts);
    const auto rest = [&](const char* name, int one, int other) {
        return rest_of(layout.degree, name, one, other);
    };
    layout.stages = stages.value_or(1);
    if (has_rest_in_stages && !stages) {
        layout.stages = rest("pipeline_degree", data.value_or(1), parts.value_or(1));
    }
    const bool has_rest_in_parts =
        mode == config::ParallelMode::model || mode == config::ParallelMode::mixed;
    layout.parts = parts.value_or(1);
    if (has_rest_in_parts && !parts) {
        layout.parts = rest("model_degree", data.value_or(1), stages.value_or(1));
    }
    const int data_degree = data ? *data : rest("data_degree", layout.stages, layout.parts);
    require(mode != config::ParallelMode::data || data_degree == layout.degree, ExitCode::launch,
            "parallel.data_degree: expected auto or P_degree={} in parallel.mode data, got {}",
            layout.degree, data_degree);
    const bool is_product = layout.stages >= 1 && layout.parts >= 1 &&
                            layout.degree % layout.stages == 0 &&
                            layout.degree / layout.stages % layout.parts == 0 &&
                            layout.degree / layout.stages / layout.parts == data_degree;
    require(is_product, ExitCode::launch,
            "parallel.data_degree={} x parallel.pipeline_degree={}{} must be P_degree={}; change "
            "one of them, or leave it auto",
            data_degree, layout.stages,
            layout.parts == 1 ? "" : fmt::format(" x parallel.model_degree={}", layout.parts),
            layout.degree);
    layout.micro_batches = micro_batches;
}

void check_batch(int batch_size, const Layout& layout) {
    const std::int64_t parts = std::int64_t{layout.data_degree()} * layout.micro_batches;
    const bool is_shared = batch_size >= 1 && batch_size % parts == 0;
    require(is_shared || (layout.micro_batches == 1 && layout.slices() == 1), ExitCode::launch,
            "training.batch_size={} cannot be shared evenly by {} ranks x "
            "parallel.micro_batches={}; make it a multiple of {}",
            batch_size, layout.data_degree(), layout.micro_batches, parts);
    require(is_shared, ExitCode::launch,
            "training.batch_size={} cannot be shared evenly by P_degree={} ranks; set "
            "training.batch_size: {}, or change bagging.P_degree",
            batch_size, layout.data_degree(),
            nearest_multiples(std::max(batch_size, 0), layout.data_degree()));
}

/// Spans are parts of what a rank computes at once, or that of several ranks.
void check_statistics_span(const config::TrainingConfig& training, const Layout& layout) {
    const int rows = layout.rows(training.batch_size);
    const int span = training.batch_norm_samples.value_or(rows);
    const bool is_part = span >= 1 && rows % span == 0;
    const bool is_several =
        span >= 1 && span % rows == 0 && layout.data_degree() % (span / rows) == 0;
    require(
        is_part || is_several, ExitCode::usage,
        "training.batch_norm_samples: expected a divisor of the {} samples that a rank computes "
        "at once, or k times as many for a k that divides the {} ranks that share a batch, got "
        "{}",
        rows, layout.data_degree(), span);
}

}  // namespace

Layout make_layout(const config::BaggingConfig& bagging, const config::TrainingConfig& training,
                   const config::ParallelConfig& parallel, int ranks, int ranks_per_node) {
    require(ranks >= 1 && ranks_per_node >= 1, ExitCode::launch,
            "a layout needs at least 1 rank and 1 rank per node, got {} and {}", ranks,
            ranks_per_node);
    require(bagging.groups.value_or(1) >= 1, ExitCode::usage,
            "bagging.M: expected at least 1, got {}", bagging.groups.value_or(1));
    require(bagging.degree.value_or(1) >= 1, ExitCode::usage,
            "bagging.P_degree: expected at least 1, got {}", bagging.degree.value_or(1));
    Layout layout = from_configuration(bagging, ranks, ranks_per_node);
    split_degree(parallel, layout);
    check_batch(training.batch_size, layout);
    check_statistics_span(training, layout);
    return layout;
}

int statistics_ranks(const config::TrainingConfig& training, const Layout& layout) {
    const int rows = layout.rows(training.batch_size);
    return std::max(1, training.batch_norm_samples.value_or(rows) / rows);
}

}  // namespace hpcai::plan
