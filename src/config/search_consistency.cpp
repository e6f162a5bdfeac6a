// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <hpcai/config/search_limits.hpp>

#include "setting_checker.hpp"

namespace hpcai::config {
namespace {

class SearchChecker : private SettingChecker {
public:
    using SettingChecker::SettingChecker;

    void check_all() const {
        const SearchConfig& search = config_.search;
        const std::string as_kind = as("workload.kind");
        const Level level = config_.run.level;
        if (!is_search(config_.workload)) {
            check(level != Level::aiperf, "run.level", "another level" + as_kind);
            for (const Key& key : keys())
                if (key.section == "search") check_default(key.full_name(), as_kind);
            return;
        }
        check(level == Level::custom || level == Level::aiperf, "run.level",
              "custom or aiperf" + as_kind);
        check(level == Level::custom || config_.workload.problem_class == ProblemClass::official,
              "workload.problem_class", "official" + as("run.level"));
        check(search.trials > 0 || search.duration_seconds > 0, "search.trials",
              "1 or more" + as("search.duration_seconds"));
        check(!search.epochs.empty(), "search.epochs", "one value or more");
        check(std::ranges::max(search.epochs) == config_.workload.epochs, "workload.epochs",
              "the largest of search.epochs" + as("search.epochs"));
        check(config_.training.warmup_epochs < std::ranges::min(search.epochs),
              "training.warmup_epochs", "less than the smallest of search.epochs");
        const std::int64_t most_epochs = std::ranges::max(search.epochs);
        check(search.trials * most_epochs <= kMaxSearchEpochs, "search.trials",
              fmt::format("at most {}", kMaxSearchEpochs / most_epochs) + as("search.epochs"));
        check(search.max_flops_factor > 1, "search.max_flops_factor",
              "a number above 1, as every edit adds FLOPs");
        check(search.root_blocks.size() == 4, "search.root_blocks", "4 values, one for each stage");
        check_hyper_parameters();
        check((search.history == SearchHistory::recorded) != search.recorded.empty(),
              "search.recorded",
              (search.recorded.empty() ? "a result directory" : "an empty text") +
                  as("search.history"));
        check_search_run(as_kind);
    }

private:
    /// Checks that the values of a search's first trials are in the ranges of the later draws.
    void check_hyper_parameters() const {
        const SearchConfig& search = config_.search;
        const double rate = config_.training.learning_rate, decay = config_.training.weight_decay;
        check_range(search.rate_factors, "search.rate_factors");
        check_range(search.weight_decays, "search.weight_decays");
        check(search.rate_factors.front() <= 1 && search.rate_factors.back() >= 1,
              "search.rate_factors", "a range that contains 1");
        check(rate * search.rate_factors.front() > 0, "training.learning_rate",
              "a number above 0" + as("workload.kind"));
        check(decay >= search.weight_decays.front() && decay <= search.weight_decays.back(),
              "training.weight_decay",
              "a number in search.weight_decays" + as("search.weight_decays"));
    }

    void check_search_run(const std::string& as_kind) const {
        check(config_.run.evaluate_epochs == 0, "run.evaluate_epochs", "0" + as_kind);
        check(config_.run.keep_checkpoints == 0, "run.keep_checkpoints", "0" + as_kind);
        for (const char* key : {"run.checkpoint_steps", "run.checkpoint_seconds"})
            check_default(key, as_kind + ", which stores a checkpoint after each trial");
        check(config_.bagging.sampler == Sampler::none, "bagging.sampler", "none" + as_kind);
        check(!config_.bagging.out_of_bag, "bagging.out_of_bag", "false" + as_kind);
        check(config_.parallel.mode == ParallelMode::data, "parallel.mode", "data" + as_kind);
        check(config_.parallel.micro_batches == 1, "parallel.micro_batches", "1" + as_kind);
        check(config_.data.resident_mib == 0, "data.resident_mib", "0" + as_kind);
        check(config_.data.decoder == Decoder::cpu, "data.decoder", "cpu" + as_kind);
        check(config_.training.initial_weights.empty(), "training.initial_weights",
              "an empty text" + as_kind);
    }

    void check_range(const std::vector<double>& range, const std::string& full_name) const {
        check(range.size() == 2 && range.front() <= range.back(), full_name,
              "two numbers in ascending order");
    }
};

}  // namespace

void check_search(const Config& config, const LocationOf& location_of) {
    SearchChecker(config, location_of).check_all();
}

}  // namespace hpcai::config
