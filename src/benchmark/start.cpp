// SPDX-License-Identifier: Apache-2.0
#include "start.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/error.hpp>
#include <hpcai/benchmark/report_files.hpp>
#include <hpcai/comm/agreement.hpp>
#include <hpcai/config/reader.hpp>
#include <hpcai/config/writer.hpp>
#include <hpcai/data/data_duplicator.hpp>
#include <hpcai/prediction/model_check.hpp>
#include <hpcai/prediction/sum_options.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/manifest.hpp>
#include <hpcai/verification/repetitions.hpp>

#include "determinism.hpp"
#include "directory_lock.hpp"
#include "environment.hpp"
#include "launch_check.hpp"
#include "launch_file.hpp"
#include "result_directory.hpp"
#include "result_layout.hpp"
#include "result_reader.hpp"

namespace hpcai::benchmark {
namespace {

namespace fs = std::filesystem;

std::string broadcast_text(comm::Communicator& everyone, const std::string& text) {
    std::vector<std::byte> bytes(text.size());
    std::memcpy(bytes.data(), text.data(), text.size());
    comm::broadcast_bytes(everyone, bytes, 0);
    return std::string(storage::text_of(bytes));
}

int ranks_of_fullest_node(const std::vector<int>& node_of_world_rank) {
    std::map<int, int> ranks;
    int most = 1;
    for (const int node : node_of_world_rank) most = std::max(most, ++ranks[node]);
    return most;
}

struct PackedFacts {
    std::int32_t threads = 0;
    std::int8_t over_repeats = 0;
    std::int8_t over_threads = 0;
    char device[124] = {};
    char conditions[126] = {};
    char device_uuid[64] = {};
};

std::vector<RankFacts> exchange_facts(const device::Device& device, comm::Communicator& everyone) {
    PackedFacts mine;
    mine.threads = device.threads();
    const std::string text = device.description();
    text.copy(mine.device, sizeof mine.device - 1);
    device.uuid().copy(mine.device_uuid, sizeof mine.device_uuid - 1);
    const device::Determinism determinism = device.determinism();
    mine.over_repeats = determinism.over_repeats;
    mine.over_threads = determinism.over_threads;
    // A promise that is cut would say more than it may.
    ensure(determinism.conditions.size() < sizeof mine.conditions, "conditions of {} letters",
           determinism.conditions.size());
    determinism.conditions.copy(mine.conditions, sizeof mine.conditions - 1);
    std::vector<PackedFacts> all(static_cast<std::size_t>(everyone.size()));
    everyone.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
    std::vector<RankFacts> facts;
    for (const PackedFacts& packed : all) {
        facts.push_back({packed.threads,
                         packed.device,
                         packed.device_uuid,
                         {packed.over_repeats != 0, packed.over_threads != 0, packed.conditions}});
    }
    return facts;
}

std::string output_of(const RunRequest& request, const config::RunConfig& run) {
    if (!request.resume.empty()) return request.resume;
    if (!request.output.empty()) return request.output;
    if (!run.output.empty()) return run.output;
    return fmt::format("results/{}-{}", run.name, utc_now_compact());
}

/// That of this run: one of several has its own seed and is told as a run by itself.
config::Config config_of(const Series& series) {
    config::Config config = *series.config;
    config.run.seed += static_cast<std::uint64_t>(series.number) - 1;
    config.run.repeat = 1;
    return config;
}

fs::path output_of(const Series& series) {
    if (series.config->run.repeat == 1) return series.folder;
    return series.folder / verification::repetition_name(series.number);
}

void check_backend(const config::Config& config, const device::Device& device) {
    require(
        config.communication.backend != config::CommunicationBackend::nccl ||
            !device.uuid().empty(),
        ExitCode::usage,
        "communication.backend: expected auto or mpi, as the ranks compute on CPUs, got 'nccl'");
}

void check_residents(const config::Config& config, const device::Device& device) {
    require(config.data.resident_mib == 0 || device.resizes_crops(), ExitCode::usage,
            "data.resident_mib: expected 0, as the ranks compute on CPUs, got {}; "
            "data.decoded_cache_mib keeps pictures in their memory",
            config.data.resident_mib);
}

void check_parts(const plan::Layout& layout, const device::Device& device) {
    require(layout.parts == 1 || device.computes_parts(), ExitCode::usage,
            "parallel.model_degree: expected 1, as {} computes no parts of layers yet, got {}; "
            "parallel.mode data and pipeline do without, and device.kind cpu has parts",
            device.description(), layout.parts);
}

/// Whether the result in `folder` is that of all groups, whose files are whole.
bool have_all_voted(const fs::path& folder, const config::Config& config, int groups) {
    try {
        for (const GroupRecord& group : read_result(folder).work.groups) {
            if (!group.failure.empty()) return false;
        }
    } catch (const Error&) {  // they can vote again
        return false;
    }
    for (int group = 0; group < groups; ++group) {
        if (!read_finished_group(folder, config.workload, group)) return false;
    }
    return true;
}

/// Rank 0's part of a resumption, of which the others hear.
void check_resumption(const fs::path& folder, const config::Config& config,
                      const plan::Layout& layout, const LaunchRecord& launch) {
    std::error_code error;
    const TopologyRecord& begun = launch.topology;
    require(layout.groups == begun.groups && layout.degree == begun.degree, ExitCode::launch,
            "{}: was begun with bagging.M {} and bagging.P_degree {}, and these {} ranks come to "
            "{} and {}; start `{}` with as many ranks a node",
            folder.string(), begun.groups, begun.degree, layout.ranks, layout.groups, layout.degree,
            resume_command(begun.ranks, folder));
    require_same_config(folder, config, launch);
    const bool has_result = fs::exists(folder / storage::kManifestName, error);  // written last
    require(!has_result || !have_all_voted(folder, config, layout.groups), ExitCode::usage,
            "{}: has a result of all {} groups; there is nothing to resume, and `hpcai500 verify` "
            "checks it",
            folder.string(), layout.groups);
    require_undamaged_groups(folder, config.workload, layout.groups, layout.degree);
}

/// A run that is to go on; but for the time of its begin and whether it had faults, at rank 0
/// alone.
struct Resumption {
    LaunchRecord begun;
    std::shared_ptr<storage::FileLock> lock;
};

/// Of rank 0, for all, any of which may come to write the result.
void share_fact(comm::Communicator& everyone, const char* name,
                std::map<std::string, std::string>& facts) {
    const auto found = facts.find(name);
    const std::string mine = found == facts.end() ? "" : "=" + found->second;
    const std::string shared = broadcast_text(everyone, mine);
    if (!shared.empty()) facts[name] = shared.substr(1);
}

/// What its directory says of it. Collective.
Resumption agree_on_resumption(const RunRequest& request, comm::Communicator& everyone) {
    Resumption found;
    comm::run_together(everyone, [&] {
        if (everyone.rank() != 0) return;
        require(fs::is_regular_file(fs::path(request.resume) / "config.yaml"), ExitCode::usage,
                "{}: expected the result directory of a run, with its config.yaml", request.resume);
        found.lock = lock_directory(request.resume, storage::FileLock::Kind::exclusive);
        found.begun = read_launch_file(request.resume);
        const int ranks = found.begun.topology.ranks;
        require(ranks == everyone.size(), ExitCode::launch,
                "{}: was begun with {} ranks, got {}; start it as `{}`", request.resume, ranks,
                everyone.size(), resume_command(ranks, request.resume));
    });
    found.begun.started_utc = broadcast_text(everyone, found.begun.started_utc);
    share_fact(everyone, kFaultsFact, found.begun.environment);
    return found;
}

/// The samples of the run, on each node's own disk where data.staging says so.
data::SampleSets open_samples(const config::Config& config,
                              const plan::ParallelismController& controller,
                              comm::Communicator& everyone, int threads) {
    if (config.data.staging == config::Staging::none) {
        return data::make_sample_sets(config, everyone);
    }
    constexpr int kLeastThreads = 4;  // which wait for files more than they compute
    data::DataDuplicator duplicator(config, controller, everyone, std::max(kLeastThreads, threads));
    return data::make_sample_sets(config, everyone, &duplicator);
}

/// Collective.
void take_up(const Resumption& resumption, const fs::path& output, data::SampleSets& samples,
             comm::Communicator& everyone) {
    comm::run_together(everyone, [&] {
        if (everyone.rank() == 0) require_same_samples(output, samples, resumption.begun);
    });
    object_to_faults(resumption.begun.environment, samples);
}

/// fp32 serves everywhere: machines of two kinds compute alike or the members differ.
device::Precision agree_on_precision(device::Precision mine, comm::Communicator& everyone) {
    const double number = mine.int8 ? -2.0 : mine.tf32 ? -1.0 : static_cast<double>(mine.compute);
    std::array<double, 2> ends{number, -number};
    everyone.all_reduce_max(ends);
    return ends[0] == -ends[1] ? mine : device::Precision{};
}

}  // namespace

config::Config agree_on_config(const RunRequest& request, comm::Communicator& everyone) {
    std::string effective;
    comm::run_together(everyone, [&] {
        if (everyone.rank() != 0) return;
        const std::string path =
            request.resume.empty() ? request.config_path : request.resume + "/config.yaml";
        const std::string yaml = path.empty() ? "" : config::read_file(path);
        effective = config::to_yaml(
            config::parse(yaml, path.empty() ? "defaults" : path, request.overrides));
    });
    return config::parse(broadcast_text(everyone, effective), request.config_path, {});
}

int ranks_sharing_cores(const std::vector<int>& node_of_world_rank, const device::Cores& cores,
                        comm::Communicator& everyone) {
    std::vector<std::uint64_t> sets(node_of_world_rank.size());
    everyone.all_gather(std::as_bytes(std::span(&cores.allowed_set, 1)),
                        std::as_writable_bytes(std::span(sets)));
    const int node = node_of_world_rank[static_cast<std::size_t>(everyone.rank())];
    int sharing = 0;
    for (std::size_t rank = 0; rank < sets.size(); ++rank) {
        sharing += node_of_world_rank[rank] == node && sets[rank] == cores.allowed_set;
    }
    return sharing;
}

Start agree_on_start(const RunRequest& request, comm::StartUp& start_up, Series& series) {
    comm::Communicator& everyone = start_up.everyone();
    const std::string started = broadcast_text(everyone, utc_now());
    const bool resumes = !request.resume.empty();
    std::string program = check_programs(start_up);
    Resumption resumption;
    if (resumes) resumption = agree_on_resumption(request, everyone);
    if (!series.config) {
        series.config = agree_on_config(request, everyone);
        series.folder = broadcast_text(everyone, output_of(request, series.config->run));
    }
    config::Config config = config_of(series);

    const std::vector<int>& nodes = start_up.node_of_world_rank();
    const plan::Layout layout = plan::make_layout(config.bagging, config.training, config.parallel,
                                                  everyone.size(), ranks_of_fullest_node(nodes));
    plan::ParallelismController controller(layout, nodes);
    const plan::RankPlace place = controller.place(everyone.rank());
    prediction::sum_options(config.communication, controller, place.group);  // or throws
    prediction::check_model(config, layout);
    const device::Cores cores = device::count_cores();
    const PlaceOnNode place_on_node{ranks_sharing_cores(nodes, cores, everyone), place.node_rank};

    OpenDevice opened;
    device::Precision precision;
    comm::run_together(everyone, [&] {
        opened = open_device(config, cores, place_on_node);
        precision = choose_precision(config.training.precision, *opened.device);
        check_backend(config, *opened.device);
        check_residents(config, *opened.device);
        check_parts(layout, *opened.device);
    });
    precision = agree_on_precision(precision, everyone);
    std::vector<RankFacts> facts = exchange_facts(*opened.device, everyone);
    check_devices(facts, config.run.level);
    require(
        config.communication.backend != config::CommunicationBackend::nccl || layout.degree == 1 ||
            describe_sharing(facts).empty(),
        ExitCode::launch,
        "communication.backend: expected auto or mpi, as NCCL wants a GPU for each rank and {}, "
        "got 'nccl'",
        describe_sharing(facts));
    const int threads =
        device::threads_for_rank(config.device.threads, cores, place_on_node.ranks_sharing_cores);

    const fs::path output = output_of(series);
    comm::run_together(everyone, [&] {  // before samples are copied, which may take hours
        if (everyone.rank() != 0) return;
        if (resumes) return check_resumption(output, config, layout, resumption.begun);
        require_new_or_empty(series.number == 1 ? series.folder : output);
    });
    DeterminismRecord determinism =
        describe_determinism(config.run.deterministic, facts, layout.degree);
    data::SampleSets samples = open_samples(config, controller, everyone, threads);
    if (resumes) take_up(resumption, output, samples, everyone);
    return {std::move(config),
            std::move(controller),
            place,
            output,
            start_up.hostnames(),
            std::move(facts),
            std::move(samples),
            std::move(opened.device),
            precision,
            resumes ? resumption.begun.started_utc : started,
            threads,
            std::move(opened.note),
            {},
            series.number,
            series.config->run.repeat,
            {},
            resumes,
            started,
            series.since_program_start,
            std::move(program),
            std::move(determinism),
            {},
            std::move(resumption.lock)};
}

}  // namespace hpcai::benchmark
