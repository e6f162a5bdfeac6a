// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include <hpcai/base/error.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/plan/parallelism_controller.hpp>

namespace hpcai::plan {
namespace {

/// Returns the positive multiples of `unit` around `value`, such as "4 or 8" or "4".
std::string nearest_multiples(int value, int unit) {
    const std::int64_t below = std::int64_t{value} / unit * unit;
    if (below == 0) return fmt::format("{}", unit);
    return fmt::format("{} or {}", below, below + unit);
}

void require_eq_5(int groups, int degree, int ranks) {
    const std::int64_t needed = std::int64_t{groups} * degree;
    if (needed == ranks) return;
    std::string remedy = fmt::format("start with `mpirun -np {}`", needed);
    if (ranks % groups == 0) remedy += fmt::format(", or set bagging.P_degree: {}", ranks / groups);
    if (ranks % degree == 0) remedy += fmt::format(", or set bagging.M: {}", ranks / degree);
    throw Error(ExitCode::launch,
                fmt::format("bagging.M={} x bagging.P_degree={} needs {} (eq. 5), got {}; {}",
                            groups, degree, counted(needed, "rank"), ranks, remedy));
}

Layout split_ranks(const config::BaggingConfig& bagging, int ranks, int ranks_per_node) {
    if (bagging.groups && bagging.degree) {
        require_eq_5(*bagging.groups, *bagging.degree, ranks);
        return {ranks, *bagging.groups, *bagging.degree};
    }
    if (bagging.groups) {
        const int groups = *bagging.groups;
        require(ranks % groups == 0, ExitCode::launch,
                "bagging.M={} does not divide the {} (eq. 5); start with {} ranks, or change "
                "bagging.M",
                groups, counted(ranks, "rank"), nearest_multiples(ranks, groups));
        return {ranks, groups, ranks / groups};
    }
    if (bagging.degree) {
        const int degree = *bagging.degree;
        require(ranks % degree == 0, ExitCode::launch,
                "bagging.P_degree={} does not divide the {} (eq. 5); start with {} ranks, or "
                "change bagging.P_degree",
                degree, counted(ranks, "rank"), nearest_multiples(ranks, degree));
        return {ranks, ranks / degree, degree};
    }
    const int degree = std::min(ranks, ranks_per_node);
    require(
        ranks % degree == 0, ExitCode::launch,
        "bagging.M and bagging.P_degree are both `auto`, so P_degree is {}, the ranks per node; "
        "this does not divide {} ranks (eq. 5); start with {} ranks, or set bagging.M or "
        "bagging.P_degree",
        degree, ranks, nearest_multiples(ranks, degree));
    return {ranks, ranks / degree, degree};
}

const char* auto_note(bool is_given) {
    return is_given ? "" : " (auto)";
}

/// Returns ExitCode::usage for a configured value, else ExitCode::launch, because another number of
/// ranks may fix the error.
ExitCode exit_code_of(bool is_configured) {
    return is_configured ? ExitCode::usage : ExitCode::launch;
}

/// Factors P_degree into stages, shards and replicas.
class DegreeSplitter {
public:
    DegreeSplitter(const config::BaggingConfig& bagging, const config::ParallelConfig& parallel,
                   Layout& layout)
        : parallel_(parallel),
          layout_(layout),
          error_(exit_code_of(bagging.degree.has_value())),
          degree_text_(fmt::format("bagging.P_degree={}{}", layout.degree,
                                   auto_note(bagging.degree.has_value()))) {}

    void split() {
        const auto& [mode, data, stages, micro_batches, schedule, shards] = parallel_;
        const bool is_mixed = mode == config::ParallelMode::mixed;
        if (is_mixed) check_mixed();
        layout_.stages = stages.value_or(1);
        if (!stages && (mode == config::ParallelMode::pipeline || (is_mixed && shards))) {
            layout_.stages = degree_left("pipeline_degree", data.value_or(1), shards.value_or(1));
        }
        layout_.shards = shards.value_or(1);
        if (!shards && (mode == config::ParallelMode::model || is_mixed)) {
            layout_.shards = degree_left("model_degree", data.value_or(1), stages.value_or(1));
        }
        check_product(data ? *data : degree_left("data_degree", layout_.stages, layout_.shards));
        layout_.micro_batches = micro_batches;
    }

private:
    void check_mixed() const {
        const int given = parallel_.data_degree.has_value() +
                          parallel_.pipeline_degree.has_value() +
                          parallel_.model_degree.has_value();
        require(given >= 2, ExitCode::usage,
                "parallel.mode mixed: expected two or three of parallel.data_degree, "
                "parallel.pipeline_degree and parallel.model_degree, got {}",
                given);
    }

    /// Returns the `auto` degree `name`: P_degree / (first x second), where `first` and `second`
    /// are the other two degrees.
    int degree_left(const char* name, int first, int second) const {
        const std::int64_t used_ranks = std::max<std::int64_t>(1, std::int64_t{first} * second);
        require(used_ranks <= layout_.degree, error_,
                "the other degrees of parallel need {} of {} and leave no rank for parallel.{} "
                "(auto); reduce one of them, or set it to auto",
                counted(used_ranks, "rank"), degree_text_, name);
        return static_cast<int>(layout_.degree / used_ranks);
    }

    void check_product(int data_degree) const {
        const bool is_data = parallel_.mode == config::ParallelMode::data;
        require(!is_data || data_degree == layout_.degree, error_,
                "parallel.data_degree: expected auto or {} in parallel.mode data, got {}",
                degree_text_, data_degree);
        const bool is_product = layout_.stages >= 1 && layout_.shards >= 1 &&
                                layout_.degree % layout_.stages == 0 &&
                                layout_.degree / layout_.stages % layout_.shards == 0 &&
                                layout_.degree / layout_.stages / layout_.shards == data_degree;
        require(is_product, error_,
                "parallel.data_degree={}{} x parallel.pipeline_degree={}{}{} must be {}; change "
                "one of them, or set it to auto",
                data_degree, auto_note(parallel_.data_degree.has_value()), layout_.stages,
                auto_note(parallel_.pipeline_degree.has_value()),
                layout_.shards == 1 ? ""
                                    : fmt::format(" x parallel.model_degree={}{}", layout_.shards,
                                                  auto_note(parallel_.model_degree.has_value())),
                degree_text_);
    }

    const config::ParallelConfig& parallel_;
    Layout& layout_;
    ExitCode error_;
    std::string degree_text_;  // "bagging.P_degree=4 (auto)"
};

void check_batch(int batch_size, const Layout& layout, bool is_degree_fixed) {
    const int ranks = layout.data_degree();
    const std::int64_t shares = std::int64_t{ranks} * layout.micro_batches;
    const bool is_shared = batch_size >= 1 && batch_size % shares == 0;
    const ExitCode exit_code = exit_code_of(is_degree_fixed || batch_size < layout.micro_batches ||
                                            batch_size % layout.micro_batches != 0);
    require(is_shared || (layout.micro_batches == 1 && layout.partitions() == 1), exit_code,
            "training.batch_size={} cannot be divided evenly among {}{} x "
            "parallel.micro_batches={}; make it a multiple of {}",
            batch_size, counted(ranks, "rank"),
            is_degree_fixed ? "" : " (parallel.data_degree auto)", layout.micro_batches, shares);
    require(is_shared, exit_code,
            "training.batch_size={} cannot be divided evenly among {} (from bagging.P_degree{}); "
            "set training.batch_size: {}, or change bagging.P_degree",
            batch_size, counted(ranks, "rank"), is_degree_fixed ? "" : ": auto",
            nearest_multiples(std::max(batch_size, 0), ranks));
}

void check_batch_norm_samples(const config::TrainingConfig& training, const Layout& layout,
                              bool is_degree_fixed) {
    const int samples = layout.micro_batch_size(training.batch_size);
    const int span = training.batch_norm_samples.value_or(samples);
    const bool is_divisor = span >= 1 && samples % span == 0;
    const bool is_multiple =
        span >= 1 && span % samples == 0 && layout.data_degree() % (span / samples) == 0;
    require(
        is_divisor || is_multiple, exit_code_of(is_degree_fixed),
        "training.batch_norm_samples: expected a divisor of the {} that a rank computes at once, "
        "or k times this number, where k divides the {}{} that share a batch, got {}",
        counted(samples, "sample"), counted(layout.data_degree(), "rank"),
        auto_note(is_degree_fixed), span);
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
    Layout layout = split_ranks(bagging, ranks, ranks_per_node);
    DegreeSplitter(bagging, parallel, layout).split();
    // Whether the configuration fixes the number of ranks that share a batch
    const bool is_fixed = bagging.degree || parallel.data_degree;
    check_batch(training.batch_size, layout, is_fixed);
    check_batch_norm_samples(training, layout, is_fixed);
    return layout;
}

int statistics_ranks(const config::TrainingConfig& training, const Layout& layout) {
    const int samples = layout.micro_batch_size(training.batch_size);
    return std::max(1, training.batch_norm_samples.value_or(samples) / samples);
}

}  // namespace hpcai::plan
