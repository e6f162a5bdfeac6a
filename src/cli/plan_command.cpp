// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <memory>
#include <ostream>
#include <system_error>

#include <hpcai/data/record_set.hpp>
#include <hpcai/data/sample_index.hpp>
#include <hpcai/prediction/estimate.hpp>

#include "commands.hpp"

namespace hpcai::cli {
namespace {

constexpr std::int64_t kMostRanks = 10'000'000;
constexpr std::int64_t kMostSamples = std::int64_t{1} << 31;

struct Options {
    ConfigSource config;
    prediction::EstimateRequest request;
    bool json = false;
};

/// Mean size of the files, of no more of them than a file system tells in a moment.
std::optional<double> mean_bytes(const data::SampleIndex& index) {
    constexpr std::size_t kMostFiles = 10'000;
    const std::size_t step = 1 + index.samples.size() / kMostFiles;
    double bytes = 0;
    double files = 0;
    for (std::size_t sample = 0; sample < index.samples.size(); sample += step) {
        std::error_code error;
        const std::uintmax_t size = std::filesystem::file_size(index.path_of(sample), error);
        if (error) continue;
        bytes += static_cast<double>(size);
        files += 1;
    }
    return bytes > 0 ? std::optional(bytes / files) : std::nullopt;
}

/// The folder is often on another machine than the one where a run is planned.
void look_at_samples(const config::DataConfig& data, prediction::EstimateRequest& request) {
    std::error_code error;
    const std::filesystem::path path = data.path;
    if (data.kind == config::DataKind::climate_hdf5 &&
        std::filesystem::is_regular_file(path / data::kRecordIndexName, error)) {
        if (!request.samples) request.samples = data::RecordSet(path).samples();
        return;
    }
    if (data.kind != config::DataKind::image_folder || !std::filesystem::exists(path, error)) {
        return;
    }
    const bool is_staged = data.staging != config::Staging::none;
    if (request.samples && !is_staged) return;
    const data::SampleIndex index = data::load_samples(data.path);
    if (!request.samples) request.samples = static_cast<std::int64_t>(index.samples.size());
    if (is_staged) request.bytes_per_sample = mean_bytes(index);
}

ExitCode plan(const Options& options, std::ostream& out) {
    const config::Config config = load(options.config);
    prediction::EstimateRequest request = options.request;
    look_at_samples(config.data, request);
    const prediction::Estimate estimate = prediction::estimate(config, request);
    out << (options.json ? prediction::to_json(estimate) : prediction::to_text(estimate));
    return ExitCode::ok;
}

void add_request_options(CLI::App& command, prediction::EstimateRequest& request) {
    add_integer(
        command, "--ranks",
        [&request](std::int64_t ranks) { request.ranks = static_cast<int>(ranks); },
        {1, kMostRanks}, "ranks of the run")
        .required();
    add_integer(
        command, "--ranks-per-node",
        [&request](std::int64_t ranks) { request.ranks_per_node = static_cast<int>(ranks); },
        {1, kMostRanks}, "ranks of each node");
    add_integer(
        command, "--samples", [&request](std::int64_t samples) { request.samples = samples; },
        {1, kMostSamples}, "training samples, where data.path is not on this machine");
    add_number(
        command, "--flops-per-rank", [&request](double rate) { request.flops_per_rank = rate; },
        "FLOP/s that a rank sustains in training, for the time");
    add_number(
        command, "--watts-per-rank", [&request](double watts) { request.watts_per_rank = watts; },
        "watts of a rank in training, for the energy");
}

}  // namespace

void add_plan_command(CLI::App& parent, Context& context) {
    auto options = std::make_shared<Options>();
    CLI::App& command = add_command(
        parent,
        {"plan",
         "Dry run for any number of ranks: groups and nodes, FLOPs, memory, traffic, time, energy.",
         {"hpcai500 plan --config configs/imagenet_goyal.yaml --ranks 256 --ranks-per-node 8",
          "hpcai500 plan --config configs/imagenet_goyal.yaml --ranks 64 --flops-per-rank 2e13 "
          "--json"}});
    add_config_options(command, options->config, Presence::required);
    add_request_options(command, options->request);
    add_json_flag(command, options->json);
    set_action(command, context, [options, &context] { return plan(*options, context.out); });
}

}  // namespace hpcai::cli
