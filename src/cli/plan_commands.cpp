// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>
#include <ostream>
#include <regex>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/config/nearest.hpp>
#include <hpcai/config/reader.hpp>
#include <hpcai/data/record_set.hpp>
#include <hpcai/data/sample_index.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/prediction/estimate.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/report/plots.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/verification/verdict.hpp>

#include "commands.hpp"

namespace hpcai::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxRanks = 10'000'000;  // also of nodes, GPUs and ranks per node
constexpr std::int64_t kMaxSamples = std::int64_t{1} << 31;

struct PlanOptions {
    config::Sources config;
    prediction::EstimateRequest request;
    std::optional<int> nodes;
    std::optional<int> gpus_per_node;
    std::string roofline;
    std::string machine;
    std::optional<prediction::SweepRange> sweep;
    std::string svg;
    bool json = false;
};

prediction::SweepRange sweep_range(const std::string& text) {
    std::smatch match;
    std::regex_match(text, match, std::regex("ranks=(.*?)\\.\\.(.*)"));
    const auto first = parse_number<int>(match[1].str());
    const auto last = parse_number<int>(match[2].str());
    require(first && last, ExitCode::usage, "plan: --sweep: expected ranks=A..B, got {}",
            in_quotes(text));
    return {*first, *last};
}

/// Returns `name` if it has a slash or is a file, else the path of the shipped machine.
std::string machine_file(const std::string& name) {
    std::error_code ignored;
    if (name.find('/') != name.npos || fs::is_regular_file(name, ignored)) return name;
    const auto machines = config::shipped_machines();
    if (const auto found = machines.find(name); found != machines.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& machine : machines) names.push_back(machine.first);
    throw Error(
        ExitCode::usage,
        fmt::format("plan: --machine: expected a file or one of {}, got {}{}",
                    fmt::join(names, ", "), in_quotes(name), config::did_you_mean(name, names)));
}

/// Reads --roofline and --machine. If the machine has GPUs, sets --gpus-per-node if it is absent,
/// but not with a roofline of a CPU.
void read_machine(PlanOptions& options) {
    prediction::EstimateRequest& request = options.request;
    if (!options.roofline.empty()) {
        request.roofline = config::name_key("plan: --roofline", [&] {
            return records::read_file<RooflineRecord>(options.roofline);
        });
    }
    if (options.machine.empty()) return;
    options.machine = machine_file(options.machine);
    request.machine = config::name_key("plan: --machine", [&] {
        return config::read_machine(config::read_file(options.machine), options.machine);
    });
    const std::optional<double> value = request.machine->device_value("gpus_per_node");
    if (!value || (request.roofline && !request.roofline->is_gpu)) return;
    const int gpus = static_cast<int>(*value);
    if (!options.gpus_per_node)
        options.gpus_per_node = std::min(request.ranks_per_node.value_or(gpus), gpus);
    require(*options.gpus_per_node <= gpus, ExitCode::usage,
            "plan: --gpus-per-node: expected at most {}, the GPUs of a node in {}, got {}", gpus,
            printable(options.machine), *options.gpus_per_node);
}

/// Warns if the memory of the machine's device is too small.
void check_memory(const prediction::EstimateRequest& request, const PlanMemoryRecord& memory) {
    if (!request.machine) return;
    const bool is_gpu = request.machine->device_value("gpus_per_node").has_value();
    const double needed_bytes = is_gpu ? memory.total_bytes - memory.input_bytes  // input: on host
                                       : memory.fullest_node_bytes;
    const double capacity = request.machine->device_value("memory_gb").value_or(needed_bytes);
    if (needed_bytes <= capacity) return;
    std::cerr << fmt::format("the memory of --machine is too small by {}: a {} needs {}\n",
                             format_bytes(static_cast<std::uint64_t>(needed_bytes - capacity)),
                             is_gpu ? "rank" : "node",
                             format_bytes(static_cast<std::uint64_t>(needed_bytes)));
}

ExitCode sweep(const PlanOptions& options, const config::Config& config,
               const prediction::EstimateRequest& request, std::ostream& out) {
    const SweepRecord record = prediction::sweep(config, request, *options.sweep);
    if (!options.svg.empty()) {
        require_replaceable("plan: --svg", options.svg, "<svg ");
        storage::write_file_durably(options.svg, report::sweep_svg(record));
    }
    out << (options.json ? records::to_json(record) : prediction::to_text(record));
    check_memory(request, record.memory_per_rank);
    return ExitCode::ok;
}

/// Returns the mean size of at most kMaxFiles files, because millions would take long.
std::optional<double> mean_bytes(const data::SampleIndex& index) {
    constexpr std::size_t kMaxFiles = 10'000;
    const std::size_t step = 1 + index.samples.size() / kMaxFiles;
    double bytes = 0;
    double files = 0;
    for (std::size_t sample = 0; sample < index.samples.size(); sample += step) {
        std::error_code error;
        const std::uintmax_t size = index.is_packed()
                                        ? static_cast<std::uintmax_t>(index.ranges[sample].bytes)
                                        : fs::file_size(index.path_of(sample), error);
        if (error) continue;
        bytes += static_cast<double>(size);
        files += 1;
    }
    return bytes > 0 ? std::optional(bytes / files) : std::nullopt;
}

/// Counts records or images on this machine, unless the number of samples is set. With staging,
/// also sets the mean size of the images.
void set_sample_facts(const config::DataConfig& data, prediction::EstimateRequest& request) {
    std::error_code error;
    const fs::path path = data.path;
    if (data.kind == config::DataKind::climate_hdf5 &&
        fs::is_regular_file(path / data::kRecordIndexName, error)) {
        if (!request.samples) request.samples = data::RecordSet(path).samples();
        return;
    }
    if (data.kind != config::DataKind::image_folder || !fs::exists(path, error)) return;
    const bool is_staged = data.staging != config::Staging::none;
    if (request.samples && !is_staged) return;
    const data::SampleIndex index = data::load_samples(data.path);
    if (!request.samples) request.samples = static_cast<std::int64_t>(index.samples.size());
    if (is_staged) request.bytes_per_sample = mean_bytes(index);
}

/// Loads the configuration. Sets device.kind cuda if --gpus-per-node or --machine names GPUs.
config::Config load_for_devices(const PlanOptions& options) {
    config::Sources sources = options.config;
    const config::DeviceKind kind = load(sources).device.kind;
    if (options.gpus_per_node && kind != config::DeviceKind::cuda) {
        require(kind == config::DeviceKind::automatic, ExitCode::usage,
                "plan: --gpus-per-node or --machine: expected device.kind auto or cuda, got cpu");
        sources.overrides.emplace_back("device.kind=cuda");
    }
    return data::load_config(sources);
}

/// Sets the number of ranks, unless --ranks or --sweep sets it: --nodes x the ranks per node, else
/// the ranks of --roofline, else M x P_degree. With --gpus-per-node, each GPU has one rank.
void set_ranks(const PlanOptions& options, const config::BaggingConfig& bagging,
               prediction::EstimateRequest& request) {
    if (options.gpus_per_node) {
        if (!request.ranks_per_node) request.ranks_per_node = options.gpus_per_node;
        require(request.ranks_per_node == options.gpus_per_node, ExitCode::usage,
                "plan: --gpus-per-node: expected one GPU per rank, got {} for {} ranks per node",
                *options.gpus_per_node, *request.ranks_per_node);
    }
    if (!options.nodes) {
        if (request.ranks > 0 || options.sweep) return;
        const std::int64_t product = std::min<std::int64_t>(
            std::int64_t{bagging.groups.value_or(0)} * bagging.degree.value_or(0), kMaxRanks + 1);
        request.ranks = request.roofline ? request.roofline->ranks : static_cast<int>(product);
        return;
    }
    if (!request.ranks_per_node && request.roofline)
        request.ranks_per_node = request.roofline->ranks_of_fullest_node;
    require(request.ranks == 0 && request.ranks_per_node, ExitCode::usage,
            "plan: --nodes: expected --gpus-per-node or --ranks-per-node with it, and no --ranks");
    const std::int64_t ranks = std::int64_t{*options.nodes} * *request.ranks_per_node;
    require(ranks <= kMaxRanks, ExitCode::usage, "plan: --nodes: expected at most {} ranks, got {}",
            kMaxRanks, ranks);
    request.ranks = static_cast<int>(ranks);
}

ExitCode plan(const PlanOptions& given, const Context& context) {
    PlanOptions options = given;
    read_machine(options);
    const config::Config config = load_for_devices(options);
    prediction::EstimateRequest& request = options.request;
    set_ranks(options, config.bagging, request);
    if (request.machine) prediction::set_machine_rates(config, request);
    require(!options.sweep || request.ranks == 0, ExitCode::usage,
            "plan: --sweep: expected no --ranks and no --nodes, which the sweep replaces");
    if (options.sweep) return sweep(options, config, request, context.out);
    require(
        request.ranks > 0, ExitCode::usage,
        "plan: --ranks or --nodes: expected a number, got none; the default is the number of ranks "
        "of --roofline, else M x P_degree, but M or P_degree is auto");
    require(options.svg.empty(), ExitCode::usage, "plan: --svg: expected with --sweep only");
    set_sample_facts(config.data, request);
    if (!request.samples) request.samples = verification::required_training_samples(config);
    PlanRecord plan;
    try {
        plan = prediction::estimate(config, request);
    } catch (const Error& error) {
        throw Error(error.code(), replace_launch(error.what(), "use `--ranks $1`"));
    }
    context.out << (options.json ? records::to_json(plan) : prediction::to_text(plan));
    check_memory(request, plan.memory_per_rank);
    for (const std::string& rule : verification::rules_broken_by_settings(config))
        std::cerr << "the result will be INVALID: " << rule << '\n';
    const std::string incomplete = verification::describe_missing_for_rank(config);
    if (!incomplete.empty()) std::cerr << wrap("the result is " + incomplete, 4) << '\n';
    return ExitCode::ok;
}

void add_request_options(Command command, PlanOptions& options) {
    prediction::EstimateRequest& request = options.request;
    command.add_integer(
        "--ranks", request.ranks, {1, kMaxRanks},
        "ranks of the run; default: those of --roofline, else M x P_degree; not with --sweep");
    command.add_integer("--ranks-per-node", request.ranks_per_node, {1, kMaxRanks},
                        "ranks per node; default: those of --roofline");
    command.add_integer("--nodes", options.nodes, {1, kMaxRanks},
                        "nodes, instead of --ranks; not with --sweep");
    command.add_integer("--gpus-per-node", options.gpus_per_node, {1, kMaxRanks},
                        "GPUs per node, each with one rank");
    command.add_integer("--samples", request.samples, {1, kMaxSamples},
                        "training samples, if data.path is not on this machine");
    command.add_number("--images-per-second", request.images_per_second, above_zero(),
                       "images/s of a rank in training, to estimate the time");
    command.add_number("--flops-per-rank", request.flops_per_rank, above_zero(),
                       "FLOP/s of a rank in training, to estimate the time");
    command.add_number("--watts-per-rank", request.watts_per_rank, above_zero(),
                       "watts of a rank in training, to estimate the energy");
}

void add_machine_options(Command command, PlanOptions& options) {
    command.add_text("--roofline", options.roofline, "FILE",
                     "output of `hpcai500 roofline`, to predict the time");
    command.add_text("--machine", options.machine, "FILE",
                     "file with devices and links, or its name in configs/machines. With "
                     "--roofline, its links replace measured all-reduces and its devices are not "
                     "used");
    command.add_parsed(
        "--sweep", [&options](const std::string& text) { options.sweep = sweep_range(text); },
        "ranks=A..B", "predict bagging and one data-parallel model on A, 2 A, 4 A, ... B ranks");
    command.add_text("--svg", options.svg, "FILE", "file for the plot of the sweep");
}

ExitCode flops(const ConfigOptions& options, const Context& context) {
    const config::Config config = data::load_config(options.config);
    context.out << (options.json ? prediction::flops_json(config)
                                 : prediction::flops_table(config));
    return ExitCode::ok;
}

}  // namespace

void add_plan_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"plan",
         "Estimate a run on any number of ranks: groups, nodes, FLOPs, memory, traffic, time, "
         "energy.",
         {"hpcai500 plan --config configs/imagenet_goyal.yaml --nodes 32 --gpus-per-node 8 "
          "--images-per-second 8000",
          "hpcai500 plan --config configs/imagenet_nvidia.yaml --nodes 4 --machine h200 --json",
          "hpcai500 plan --config configs/quickstart.yaml --roofline roofline.json --sweep "
          "ranks=1..100000 --svg sweep.svg"}},
        plan);
    options.request.ranks = 0;
    add_config_options(command, options.config, Presence::required);
    add_request_options(command, options);
    add_machine_options(command, options);
    add_json_flag(command, options.json);
}

void add_flops_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"flops",
         "Count a model's FLOPs by layer and pass in three conventions (ledgers), and "
         "its parameters and activations.",
         {"hpcai500 flops --config configs/imagenet_goyal.yaml",
          "hpcai500 flops --config configs/imagenet_goyal.yaml --set "
          "workload.model=resnet50_v1 --json"}},
        flops);
    add_config_options(command, options.config, Presence::required);
    add_json_flag(command, options.json);
}

}  // namespace hpcai::cli
