// SPDX-License-Identifier: Apache-2.0
#include <sstream>
#include <string>

#include <hpcai/base/error.hpp>
#include <hpcai/config/writer.hpp>
#include <hpcai/results/launch_file.hpp>
#include <hpcai/results/recorded_search.hpp>
#include <hpcai/results/result_layout.hpp>
#include <hpcai/search/history.hpp>
#include <hpcai/storage/file.hpp>

namespace hpcai::results {
namespace {

/// Returns the configuration with only what the proposals of a search depend on, as YAML.
std::string proposal_settings(const config::Config& config) {
    config::Config settings;
    settings.run.seed = config.run.seed;
    settings.workload = config.workload;
    settings.workload.target_quality = 1;
    settings.search = config.search;
    settings.search.trials = 0;
    settings.search.duration_seconds = 0;
    settings.search.history = config::SearchHistory::asynchronous;
    settings.search.recorded.clear();
    settings.training.learning_rate = config.training.learning_rate;
    settings.training.weight_decay = config.training.weight_decay;
    // The estimate of a network's memory depends on these.
    settings.training.batch_size = config.training.batch_size;
    settings.training.optimizer = config.training.optimizer;
    settings.training.precision = config.training.precision;
    settings.bagging.degree = config.bagging.degree;
    return config::to_yaml(settings);
}

void require_equal_settings(const config::Config& config, const config::Config& recorded) {
    std::istringstream ours(proposal_settings(config)), theirs(proposal_settings(recorded));
    for (std::string mine, its; std::getline(ours, mine) && std::getline(theirs, its);) {
        require(mine == its, ExitCode::usage,
                "search.recorded: '{}' has other settings: '{}', but this search has '{}'",
                config.search.recorded, its.substr(its.find_first_not_of(' ')),
                mine.substr(mine.find_first_not_of(' ')));
    }
}

}  // namespace

void require_replayable(const config::Config& config, int groups) {
    if (config.search.history != config::SearchHistory::recorded) return;
    const std::filesystem::path directory = config.search.recorded;
    const bool is_search = storage::path_exists(directory / "config.yaml") &&
                           storage::path_exists(group_directory(directory, 0) / kTrialsName);
    require(is_search, ExitCode::usage, "search.recorded: '{}' is no result of a search",
            config.search.recorded);
    require_equal_settings(config, read_config(directory));
    for (int group = 0; group <= groups; ++group) {
        search::HistoryReader reader(group, group_directory(directory, group) / kTrialsName);
        reader.update();
        const std::int64_t lines = reader.history().lines();
        require(group < groups || lines == 0, ExitCode::usage,
                "search.recorded: '{}' has more than the {} groups of this search",
                config.search.recorded, groups);
        require(group == groups || (lines > 0 && lines % 2 == 0), ExitCode::usage,
                "search.recorded: group {} of '{}' has not finished its trials", group,
                config.search.recorded);
    }
}

}  // namespace hpcai::results
