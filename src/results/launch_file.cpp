// SPDX-License-Identifier: Apache-2.0
#include <system_error>

#include <hpcai/base/error.hpp>
#include <hpcai/config/reader.hpp>
#include <hpcai/config/writer.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/results/launch_file.hpp>
#include <hpcai/results/record.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/verification/derive.hpp>
#include <hpcai/verification/repetitions.hpp>
#include <hpcai/verification/verify.hpp>

namespace hpcai::results {

std::string describe_broken_creation(const std::filesystem::path& output) {
    const bool is_broken = storage::path_exists(output / "groups") &&
                           storage::path_exists(output / "evaluation") &&
                           !storage::path_exists(output / "config.yaml");
    return is_broken ? "; the launch that created this directory was killed: remove it" : "";
}

void require_run(const std::filesystem::path& output) {
    std::error_code error;
    require(std::filesystem::is_regular_file(output / "config.yaml", error), ExitCode::usage,
            "{}: expected the result directory of a run, with its config.yaml; a rejected "
            "launch creates none{}{}",
            output.string(), describe_broken_creation(output),
            verification::describe_runs_inside(output));
}

void require_one_run(const std::filesystem::path& output) {
    require_run(output);
    require(read_config(output).run.repeat == 1, ExitCode::usage,
            "{}: expected one run, got several repetitions; name one of them, such as {}",
            output.string(), (output / verification::repetition_name(1)).string());
}

config::Config read_config(const std::filesystem::path& output) {
    const std::string path = (output / "config.yaml").string();
    return config::parse(config::read_file(path), path, {});
}

std::string config_digest(const context::RunContext& context) {
    return storage::sha256_hex(storage::bytes_of(context.config_text));
}

LaunchRecord launch_record(const context::RunContext& context,
                           const context::Resources& resources) {
    LaunchRecord launch;
    launch.config_sha256 = config_digest(context);
    launch.samples_sha256 = resources.samples.sha256;
    launch.precision = name_of(resources.precision);
    launch.topology = describe_topology(context);
    launch.staging = resources.samples.staging.record;
    launch.staging_seconds = {resources.samples.staging.seconds, ""};
    return launch;
}

void write_launch_file(const std::filesystem::path& output, const LaunchRecord& launch) {
    storage::write_file_durably(output / kLaunchName, records::to_json(launch));
}

LaunchRecord read_launch_file(const std::filesystem::path& output) {
    constexpr std::size_t kLimitBytes = std::size_t{64} << 20;  // enough for 100,000 ranks
    return records::read_file<LaunchRecord>(output / kLaunchName, kLimitBytes);
}

context::RunContext context_of(const std::filesystem::path& output, const TopologyRecord& topology,
                               config::Config config) {
    std::vector<int> nodes;
    std::vector<context::RankFacts> ranks;
    for (const PlaceRecord& place : topology.map) {
        nodes.push_back(place.node);
        ranks.push_back({place.threads, place.device, "", {}});
    }
    plan::ParallelismController controller = verification::place_ranks(config, nodes);
    std::vector<std::string> hosts(nodes.size());
    for (const PlaceRecord& rank : topology.map) hosts[rank.node] = rank.host;
    const plan::RankPlace place = controller.place(0);
    std::string text = config::to_yaml(config);
    return {.config = std::move(config),
            .config_text = std::move(text),
            .controller = std::move(controller),
            .place = place,
            .output = output,
            .hosts = std::move(hosts),
            .ranks = std::move(ranks),
            .is_resumed = true,
            .launch = {}};
}

void require_same_config(const std::filesystem::path& output, const std::string& config_text,
                         const LaunchRecord& launch) {
    const std::string digest = storage::sha256_hex(storage::bytes_of(config_text));
    require(digest == launch.config_sha256, ExitCode::usage,
            "{}: differs from the configuration with which the run began; restore that "
            "configuration",
            (output / "config.yaml").string());
}

void require_same_samples(const std::filesystem::path& output, const data::SampleSets& samples,
                          const LaunchRecord& launch) {
    require(samples.sha256 == launch.samples_sha256, ExitCode::data,
            "{}: the run began with other training or test samples: their names, classes or, "
            "in problem class mini, contents differ from those in data.path and "
            "data.validation_path",
            output.string());
}

}  // namespace hpcai::results
