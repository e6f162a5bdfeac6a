// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <fmt/ranges.h>

#include <hpcai/base/error.hpp>
#include <hpcai/device/cpu_device.hpp>
#include <hpcai/graph/parameter_store.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/results/export_weights.hpp>
#include <hpcai/results/launch_file.hpp>
#include <hpcai/results/report_files.hpp>
#include <hpcai/results/result_layout.hpp>
#include <hpcai/search/proposal.hpp>
#include <hpcai/training/weights_file.hpp>

namespace hpcai::results {
namespace {

/// Returns the edits of a group's model, which only a search has.
std::vector<EditRecord> edits_of(const config::Config& config,
                                 const std::filesystem::path& directory) {
    if (!config::is_search(config.workload)) return {};
    const auto result = records::read_file<GroupResult>(directory / "record.json");
    return result.search ? result.search->edits : std::vector<EditRecord>{};
}

}  // namespace

ExportedModel export_weights(const std::filesystem::path& result_directory,
                             std::optional<int> group_number, const std::filesystem::path& output) {
    require_one_run(result_directory);
    const config::Config config = read_config(result_directory);
    int group = group_number.value_or(0);
    if (!group_number) {
        const std::vector<Quantity> members = read_result(result_directory).quality.members;
        group = static_cast<int>(std::ranges::max_element(members, {}, &Quantity::value) -
                                 members.begin());
    }
    const auto directory = group_directory(result_directory, group);
    const auto weights = directory / "weights.safetensors";
    std::vector<int> stored;
    for (int id = 0; std::filesystem::exists(group_directory(result_directory, id)); ++id) {
        const auto folder = group_directory(result_directory, id);
        if (std::filesystem::is_regular_file(folder / weights.filename())) stored.push_back(id);
    }
    require(std::ranges::count(stored, group) > 0, ExitCode::usage,
            "--group {}: {} holds no weights; {}", group, directory.string(),
            config.run.keep_weights
                ? fmt::format("groups with weights: [{}]", fmt::join(stored, ", "))
                : "run.keep_weights is false");
    graph::Graph graph = morphs::apply_all(models::make_model(config),
                                           search::morphs_of(edits_of(config, directory)));
    const auto device = device::make_cpu_device({});
    graph::ParameterStore store(graph, *device);
    training::read_weights(weights, graph, store);
    const auto result = records::read_file<GroupResult>(directory / "record.json");
    const std::int64_t normalized_batches =
        result.search ? result.search->best_epochs *
                            (result.record.samples_drawn / config.training.batch_size)
                      : result.record.iterations * config.parallel.micro_batches;
    training::write_weights(output, graph, store, normalized_batches);
    return {group, std::move(graph)};
}

}  // namespace hpcai::results
