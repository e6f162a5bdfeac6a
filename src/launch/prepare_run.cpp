// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>
#include <system_error>

#include <fmt/ranges.h>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/error.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/config/reader.hpp>
#include <hpcai/config/writer.hpp>
#include <hpcai/data/data_duplicator.hpp>
#include <hpcai/launch/doctor_findings.hpp>
#include <hpcai/launch/environment.hpp>
#include <hpcai/launch/prepare_run.hpp>
#include <hpcai/prediction/all_reduce_options.hpp>
#include <hpcai/prediction/estimate.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/results/directory_lock.hpp>
#include <hpcai/results/group_files.hpp>
#include <hpcai/results/launch_file.hpp>
#include <hpcai/results/recorded_search.hpp>
#include <hpcai/results/repetitions.hpp>
#include <hpcai/results/report_files.hpp>
#include <hpcai/results/result_directory.hpp>
#include <hpcai/results/result_layout.hpp>
#include <hpcai/storage/manifest.hpp>
#include <hpcai/training/faults.hpp>
#include <hpcai/verification/derive.hpp>
#include <hpcai/verification/repetitions.hpp>

#include "rank_facts.hpp"

namespace hpcai::launch {
namespace {
namespace fs = std::filesystem;
constexpr auto kExclusive = storage::FileLock::Kind::exclusive;

/// Returns whether all groups are in the result in `folder`, and no file of a group is damaged.
bool is_result_complete(const fs::path& folder, const config::Config& config, int groups) {
    try {
        for (const GroupRecord& group : results::read_result(folder).work.groups) {
            if (!group.failure.empty()) return false;
        }
    } catch (const Error&) {  // no valid result: the ensemble can be evaluated again
        return false;
    }
    for (int group = 0; group < groups; ++group) {
        if (!results::read_finished_group(folder, config, group)) return false;
    }
    return true;
}

/// Returns the result directory of the current run of the series.
fs::path output_of(const context::RepeatedRuns& series) {
    if (series.config->run.repeat == 1) return series.folder;
    return series.folder / verification::repetition_name(series.number);
}

/// The run to resume: the only one, or one of run.repeat. If the earlier launch stopped between two
/// runs, this is the later one, which has not begun.
struct Resumption {
    LaunchRecord launch;      // of the earlier launches; `topology` is complete only on rank 0
    bool is_trained = false;  // whether all groups have finished
    std::shared_ptr<storage::FileLock> lock;  // of the run's directory; held by rank 0

    bool has_begun() const { return !launch.started_utc.empty(); }

    /// Checks on rank 0 that a launch with this layout can resume `series`. Throws Error(launch)
    /// for another layout, Error(usage) if the configuration differs or the run is complete, or
    /// Error(data) if files of finished groups are damaged.
    void check(const context::RepeatedRuns& series, const config::Config& config,
               const plan::Layout& layout) {
        std::error_code error;
        const fs::path folder = output_of(series);
        const TopologyRecord& topology = launch.topology;
        require(layout.groups == topology.groups && layout.degree == topology.degree,
                ExitCode::launch,
                "{}: the run began with bagging.M {} and bagging.P_degree {}, but this launch of "
                "{} has {} and {}; start `{}` with the same number of ranks per node",
                folder.string(), topology.groups, topology.degree, counted(layout.ranks, "rank"),
                layout.groups, layout.degree,
                results::resume_command(topology.ranks, launch.environment, series.folder));
        const int begun = has_begun() ? series.number : series.number - 1;  // last run begun
        const config::Config stored = verification::repetition_config(series.stored_config, begun);
        results::require_same_config(series.folder, config::to_yaml(stored), launch);
        if (!has_begun()) return results::require_new_or_empty(folder);
        const bool has_result = fs::exists(folder / storage::kManifestName, error);  // written last
        require(!has_result || !is_result_complete(folder, config, layout.groups), ExitCode::usage,
                "{}: the run is complete, with the results of {}; `hpcai500 verify` checks it",
                folder.string(), counted(layout.groups, "group"));
        is_trained = results::require_undamaged_groups(folder, config, layout.groups,
                                                       layout.degree) == layout.groups;
    }

    /// Broadcasts the launch record without topology: any leader may write a result. Collective.
    void share(comm::Communicator& everyone) {
        LaunchRecord facts = launch;
        facts.topology = {1, 1, 1, 1, {{}}};  // the map of all ranks would be large
        const std::string text = comm::broadcast(everyone, records::to_json(facts));
        if (everyone.rank() != 0) launch = records::from_json<LaunchRecord>(text, kLaunchName);
        is_trained = !comm::broadcast(everyone, std::string(is_trained ? "yes" : "")).empty();
    }

    /// Copies the facts of earlier launches to `next`, the record of this launch. If all groups
    /// have finished, also copies the environment of their training; kFaultsFact of `next` remains.
    void keep_facts(LaunchRecord& next) {
        if (!has_begun()) return;
        next.started_utc = launch.started_utc;
        next.invocations = launch.invocations;
        if (!is_trained) return;
        launch.environment.insert(next.environment.extract(kFaultsFact));
        next.environment = launch.environment;
    }

    /// Throws Error(data) on all ranks unless the run began with these samples. Marks the data as
    /// disqualified if the program of an earlier launch was built with fault injection. Collective.
    void check_samples(const std::filesystem::path& output, data::SampleSets& samples,
                       comm::Communicator& everyone) const {
        comm::collective_try(everyone, [&] {
            if (everyone.rank() == 0) results::require_same_samples(output, samples, launch);
        });
        if (launch.environment.contains(kFaultsFact)) add_fault_injection_disqualification(samples);
    }
};

/// Throws Error(usage) if an override of `resume --set` could change the result.
void require_allowed_overrides(const std::vector<std::string>& overrides) {
    constexpr std::array kKeys{"run.checkpoint_steps",     "run.checkpoint_seconds",
                               "run.time_limit_seconds",   "run.first_step_timeout_seconds",
                               "run.step_timeout_seconds", "run.group_timeout_seconds",
                               "data.decode_threads",      "run.progress"};
    for (const std::string& given : overrides) {
        require(std::ranges::count(kKeys, given.substr(0, given.find('='))) > 0, ExitCode::usage,
                "--set {}: expected a key that does not change the result, one of {}",
                printable(given), fmt::join(kKeys, ", "));
    }
}

/// With run.repeat, chooses the first run without a result, from the current one on, and locks the
/// runs' folder. If all runs have a result, writes repetitions.json and throws Error(usage).
void skip_complete_runs(context::RepeatedRuns& series) {
    const int last = series.config->run.repeat;
    if (last == 1) return;
    if (!series.lock) series.lock = results::lock_directory(series.folder, kExclusive);
    series.number = results::next_repetition(series.folder, series.number);
    if (series.number > last) results::list_repetitions(series.folder, "");
    require(
        series.number <= last, ExitCode::usage,
        "{}: all {} repetitions have a result, and {} lists them; `hpcai500 verify` checks them",
        series.folder.string(), last, verification::kRepetitionsName);
}

/// Locks and reads, on rank 0, the run of `series` to resume. If it has not begun, reads the run
/// before it instead. Returns nothing if no run has begun. Throws Error(launch) for another number
/// of ranks, Error(usage) if another process uses the directory. Collective.
std::optional<Resumption> open_resumption(context::RepeatedRuns& series,
                                          comm::Communicator& everyone) {
    Resumption found;
    comm::collective_try(everyone, [&] {
        if (everyone.rank() != 0) return;
        skip_complete_runs(series);
        std::error_code error;
        fs::path directory = output_of(series);
        const bool has_begun = fs::exists(directory / "config.yaml", error);
        if (!has_begun && series.number == 1) return;
        if (has_begun) found.lock = results::lock_directory(directory, kExclusive);
        if (!has_begun)
            directory = series.folder / verification::repetition_name(series.number - 1);
        found.launch = results::read_launch_file(directory);
        if (!has_begun) found.launch.started_utc.clear();
        const int ranks = found.launch.topology.ranks;
        require(ranks == everyone.size(), ExitCode::launch,
                "{}: the run began with {}, not {}; start it as `{}`", series.folder.string(),
                counted(ranks, "rank"), everyone.size(),
                results::resume_command(ranks, found.launch.environment, series.folder));
    });
    series.number = comm::broadcast(everyone, std::vector{series.number}).front();
    found.launch.started_utc = comm::broadcast(everyone, found.launch.started_utc);
    if (series.number == 1 && !found.has_begun()) return std::nullopt;
    return found;
}

/// Returns the folder of the series: given by the command or the configuration, or a new one.
std::string chosen_folder(const context::RunRequest& request, const config::RunConfig& run) {
    if (!request.resume.empty()) return results::behind_latest(request.resume).string();
    if (!request.output.empty()) return request.output;
    if (!run.output.empty()) return run.output;
    return fmt::format("results/{}-{}", run.name, utc_now_compact());
}

/// Reads the configuration and chooses the folder at the start of a series. Collective.
void open_series(const context::RunRequest& request, comm::Communicator& everyone,
                 context::RepeatedRuns& series) {
    const config::Sources sources = request.sources();
    if (!request.resume.empty()) {
        comm::collective_try(everyone, [&] {
            if (everyone.rank() != 0) return;
            results::require_run(request.resume);
            require_allowed_overrides(request.config.overrides);
        });
    }
    series.config = agree_on_config(sources, everyone);
    series.stored_config =
        request.resume.empty() ? *series.config : agree_on_config({sources.files, {}}, everyone);
    series.folder = comm::broadcast(everyone, chosen_folder(request, series.config->run));
}

/// Throws Error(usage) if the device of this rank does not support the configuration.
void check_support(const config::Config& config, const plan::Layout& layout,
                   const device::Device& device) {
    require(
        config.communication.backend != config::CommunicationBackend::nccl ||
            !device.uuid().empty(),
        ExitCode::usage,
        "communication.backend: expected auto or mpi, as the ranks compute on CPUs, got 'nccl'");
    require(config.data.resident_mib == 0 || device.can_resize_crops(), ExitCode::usage,
            "data.resident_mib: expected 0, as the ranks compute on CPUs, got {}; "
            "data.decoded_cache_mib keeps images in host memory",
            config.data.resident_mib);
    require(
        layout.shards == 1 || device.supports_shards(), ExitCode::usage,
        "parallel.model_degree: expected 1, as {} does not support shards of layers yet, got {}; "
        "use parallel.mode data or pipeline, or device.kind cpu",
        device.description(), layout.shards);
}

/// Opens the samples of the run. With data.staging, first copies them to a disk of each node.
data::SampleSets open_samples(const config::Config& config,
                              const plan::ParallelismController& controller,
                              comm::Communicator& everyone, int threads) {
    if (config.data.staging == config::Staging::none) {
        return data::make_sample_sets(config, everyone);
    }
    constexpr int kMinThreads = 4;  // copying threads mostly wait for the file system
    data::DataDuplicator duplicator(config, controller, everyone, std::max(kMinThreads, threads));
    return data::make_sample_sets(config, everyone, &duplicator);
}

/// Returns one precision for all base models: the choice of the ranks if they agree, else fp32,
/// which every device supports.
device::Precision agree_on_precision(device::Precision mine, comm::Communicator& everyone) {
    // int8 and tf32 have numbers below 0, because each value of `compute` is at least 0.
    const double number = mine.int8 ? -2.0 : mine.tf32 ? -1.0 : static_cast<double>(mine.compute);
    std::array<double, 2> extremes{number, -number};  // maximum, -minimum
    everyone.all_reduce_max(extremes);
    return extremes[0] == -extremes[1] ? mine : device::Precision{};
}

struct OpenedDevice {
    context::OpenDevice opened;
    device::Precision precision;
    int threads = 1;
    std::vector<context::RankFacts> ranks;  // [world_rank]
};

/// Opens the device of this rank and checks the devices of all ranks. Collective.
OpenedDevice open_rank_device(const config::Config& config,
                              const plan::ParallelismController& controller,
                              comm::StartUp& start_up) {
    comm::Communicator& everyone = start_up.everyone();
    const plan::Layout& layout = controller.layout();
    const device::Cores cores = device::count_cores();
    const context::PlaceOnNode place =
        place_on_node(start_up.node_of_world_rank(), cores, everyone);
    OpenedDevice found;
    comm::collective_try(everyone, [&] {
        found.opened = context::open_device(config, cores, place);
        const device::Device& device = *found.opened.device;
        found.precision =
            context::choose_precision(config.training.precision, context::formats_of(device));
        check_support(config, layout, device);
    });
    found.precision = agree_on_precision(found.precision, everyone);
    found.ranks = gather_rank_facts(*found.opened.device, everyone);
    context::check_devices(found.ranks, config.run.level);
    const std::string sharing = context::describe_gpu_sharing(found.ranks);
    require(config.communication.backend != config::CommunicationBackend::nccl ||
                layout.degree == 1 || sharing.empty(),
            ExitCode::launch,
            "communication.backend: expected auto or mpi, got 'nccl', which needs a GPU for each "
            "rank, but {}",
            sharing);
    found.threads =
        device::threads_for_rank(config.device.threads, cores, place.ranks_sharing_cores);
    if (!found.opened.note.empty()) found.opened.note = "\n" + wrap(found.opened.note, 4);
    found.opened.note += describe_restricted_binding(cores, place);
    return found;
}

/// Places the ranks of this launch. Throws if the configuration does not fit the ranks or nodes.
plan::ParallelismController place_ranks(const config::Config& config, comm::StartUp& start_up) {
    plan::ParallelismController controller =
        verification::place_ranks(config, start_up.node_of_world_rank());
    const int group = controller.place(start_up.everyone().rank()).group;
    // The result is unused; the call throws if the options do not fit.
    prediction::all_reduce_options(config.communication, controller, group);
    prediction::check_model(config, controller.layout());
    return controller;
}

/// Checks the faults to inject. Disqualifies data if the program can inject faults. Collective.
void check_faults(const plan::Layout& layout, comm::Communicator& everyone,
                  data::SampleSets& samples) {
    comm::collective_try(everyone, [&] {
        training::check_faults(training::faults_of_environment(), layout.groups, layout.degree);
    });
    if (training::faults_are_built_in()) add_fault_injection_disqualification(samples);
}

}  // namespace

config::Config agree_on_config(const config::Sources& sources, comm::Communicator& everyone) {
    std::string effective;
    comm::collective_try(everyone, [&] {
        if (everyone.rank() == 0) effective = config::to_yaml(data::load_config(sources));
    });
    return config::parse(comm::broadcast(everyone, effective), "configuration of rank 0", {});
}

context::PlaceOnNode place_on_node(const std::vector<int>& node_of_world_rank,
                                   const device::Cores& cores, comm::Communicator& everyone) {
    const auto sets = comm::all_gather(everyone, cores.allowed_set);
    const int node = node_of_world_rank[everyone.rank()];
    context::PlaceOnNode place{.ranks_sharing_cores = 0, .ranks_on_node = 0};
    for (int rank = 0; rank < everyone.size(); ++rank) {
        if (node_of_world_rank[rank] != node) continue;
        place.ranks_sharing_cores += sets[rank] == cores.allowed_set ? 1 : 0;
        place.local_rank += rank < everyone.rank() ? 1 : 0;
        ++place.ranks_on_node;
    }
    return place;
}

PreparedRun prepare_run(const context::RunRequest& request, comm::StartUp& start_up,
                        context::RepeatedRuns& series) {
    comm::Communicator& everyone = start_up.everyone();
    const std::string started = comm::broadcast(everyone, utc_now());
    const std::string program_sha256 = check_programs(start_up);
    if (!series.config) open_series(request, everyone, series);
    std::optional<Resumption> resumption;
    if (!request.resume.empty()) resumption = open_resumption(series, everyone);
    const config::Config config = verification::repetition_config(*series.config, series.number);
    const std::string config_text =
        config::to_yaml(verification::repetition_config(series.stored_config, series.number));
    const fs::path output = output_of(series);
    plan::ParallelismController controller = place_ranks(config, start_up);
    const plan::Layout& layout = controller.layout();
    OpenedDevice rank_device = open_rank_device(config, controller, start_up);
    comm::collective_try(everyone, [&] {  // before samples are copied, which may take hours
        if (everyone.rank() != 0) return;
        results::require_replayable(config, layout.groups);
        if (resumption) return resumption->check(series, config, layout);
        const bool is_new = request.resume.empty() && series.number == 1;
        results::require_new_or_empty(is_new ? series.folder : output);
    });
    if (resumption) resumption->share(everyone);
    const DeterminismRecord determinism =
        describe_determinism(config.run.deterministic, rank_device.ranks, layout.degree);
    data::SampleSets samples = open_samples(config, controller, everyone, rank_device.threads);
    if (resumption && resumption->has_begun()) resumption->check_samples(output, samples, everyone);
    check_faults(layout, everyone, samples);

    const plan::RankPlace place = controller.place(everyone.rank());
    PreparedRun run{.context = {.config = config,
                                .config_text = config_text,
                                .controller = std::move(controller),
                                .place = place,
                                .output = output,
                                .hosts = start_up.hosts(),
                                .ranks = std::move(rank_device.ranks),
                                .is_resumed = resumption && resumption->has_begun(),
                                .launch = {.started_utc = started,
                                           .since_start = series.since_program_start,
                                           .repetition = series.number,
                                           .repetitions = series.config->run.repeat}},
                    .resources = {.device = std::move(rank_device.opened.device),
                                  .precision = rank_device.precision,
                                  .threads = rank_device.threads,
                                  .samples = std::move(samples)},
                    .device_note = std::move(rank_device.opened.note)};
    run.launch = results::launch_record(run.context, run.resources);
    run.launch.started_utc = started;
    run.launch.determinism = determinism;
    run.launch.environment = describe_environment(run.context, run.resources.samples,
                                                  program_sha256, request.command_line, everyone);
    if (resumption) {
        resumption->keep_facts(run.launch);
        run.lock = std::move(resumption->lock);
    }
    run.launch.invocations.push_back(
        {started, start_up.hosts().front(), program_sha256, request.command_line});
    return run;
}

}  // namespace hpcai::launch
