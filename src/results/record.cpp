// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iostream>
#include <string>

#include <hpcai/base/text.hpp>
#include <hpcai/config/reader.hpp>
#include <hpcai/config/writer.hpp>
#include <hpcai/report/csv.hpp>
#include <hpcai/results/group_files.hpp>
#include <hpcai/results/record.hpp>
#include <hpcai/results/result_layout.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/verification/derive.hpp>
#include <hpcai/verification/search.hpp>
#include <hpcai/workloads/workload.hpp>

#include "previous_placement.hpp"

namespace hpcai::results {
namespace {

constexpr std::size_t kTableLimitBytes = std::size_t{64} << 20;

WorkloadRecord describe_workload(const LaunchedRun& run) {
    WorkloadRecord record = verification::describe_workload(run.context.config);
    record.precision = run.launch.precision;
    record.training_samples = run.samples.training->samples();
    record.validation_samples = run.samples.validation->samples();
    record.samples_sha256 = run.launch.samples_sha256;
    record.data_disqualifications = run.samples.disqualifications;
    return record;
}

/// Returns the results of all M groups in order. Takes the result of a group that did not vote from
/// its status and its files.
std::vector<GroupResult> all_groups(const context::RunContext& context,
                                    const EnsembleResult& ensemble,
                                    const std::vector<comm::GroupStatus>& statuses) {
    std::vector<GroupResult> results;
    for (const comm::GroupStatus& status : statuses) {
        const auto voted = std::ranges::find(
            ensemble.members, status.group, [](const auto& member) { return member.record.group; });
        if (voted != ensemble.members.end()) {
            results.push_back(*voted);
            continue;
        }
        GroupResult failed =
            read_failed_group(context.output, status.group, context.controller.layout().degree);
        std::string& failure = failed.record.failure;
        if (failure.empty()) failure = status.reason_text();
        if (failure.empty()) failure = describe_hang(context.output, status.group);
        if (failure.empty()) failure = "no final status was received";
        results.push_back(std::move(failed));
    }
    return results;
}

void add_staging(const LaunchRecord& launch, RunRecord& record) {
    record.staging = launch.staging;
    record.time.staging_seconds =
        launch.staging.scope == "none"
            ? no_value("data are read from their source; nothing is staged")
            : Quantity{launch.staging_seconds.value.value_or(0), ""};
}

void add_verdict(const context::RunContext& context, const RunOutcome& outcome,
                 const std::vector<GroupResult>& groups, RunRecord& record) {
    verification::VerdictFacts facts = verification::facts_of(record, groups);
    for (std::size_t index = 0; index < groups.size(); ++index) {
        if (groups[index].record.failure.empty()) continue;
        // `score` has only files, which show whether replicas diverged but not the exit codes.
        const bool has_diverged = groups[index].record.audit.diverged_at_step > 0;
        facts.failure_codes.push_back(has_diverged ? ExitCode::invalid
                                                   : outcome.groups[index].exit_code);
    }
    record.verdict = verification::make_verdict(context.config, facts);
    verification::add_summary_facts(record.staging, groups, record.parameters);
}

/// Returns the hosts of all ranks. The ranks of a group that an earlier launch finished have the
/// hosts of that launch.
std::vector<std::string> hosts_of(const context::RunContext& context,
                                  const std::vector<GroupResult>& groups) {
    std::vector<std::string> hosts;
    for (int rank = 0; rank < context.controller.layout().ranks; ++rank)
        hosts.push_back(context.host(rank));
    for (const GroupResult& group : groups) {
        if (!context.is_resumed || !group.record.failure.empty()) continue;
        const int number = group.record.group;
        const auto file = group_directory(context.output, number) / "ranks.csv";
        try {
            const std::string text = storage::read_file_text(file, kTableLimitBytes);
            for (const RankRecord& rank : report::ranks_from_csv(text, file.string())) {
                if (rank.group_rank >= context.controller.layout().degree) {
                    continue;  // `verify` reports it
                }
                const int world_rank = context.controller.world_rank_of(number, rank.group_rank);
                std::string& host = hosts[world_rank];
                if (report::csv_name(host) != rank.host) host = rank.host;
            }
        } catch (const Error& error) {
            std::cerr << fmt::format(
                "hpcai500: {}; for group {}, the result has the hosts of the latest launch\n",
                printable(error.what()), number);
        }
    }
    return hosts;
}

/// Returns the search of the finished groups, from the histories that the groups have stored.
std::optional<SearchRecord> search_of(const LaunchedRun& run,
                                      const std::vector<GroupResult>& groups) {
    if (run.samples.hold_out == nullptr) return std::nullopt;
    std::vector<search::History> histories;
    for (int group = 0; group < std::ssize(groups); ++group) {
        const auto path = group_directory(run.context.output, group) / kTrialsName;
        search::HistoryReader reader(group, path);
        if (groups[group].record.failure.empty()) reader.update();
        histories.push_back(reader.history());
    }
    return verification::search_of_members(groups, histories, run.samples.hold_out->samples());
}

}  // namespace

TopologyRecord describe_topology(const context::RunContext& context) {
    TopologyRecord topology;
    verification::derive_topology(context.controller, topology);
    for (PlaceRecord& place : topology.map) {
        place.threads = context.ranks[place.world_rank].threads;
        place.host = context.host(place.world_rank);
        place.device = context.ranks[place.world_rank].device;
    }
    return topology;
}

RunRecord make_record(const LaunchedRun& run, const EnsembleResult& ensemble,
                      const RunOutcome& outcome) {
    const context::RunContext& context = run.context;
    const LaunchRecord& launch = run.launch;
    const std::vector<GroupResult> groups = all_groups(context, ensemble, outcome.groups);
    const std::vector<std::string> hosts = hosts_of(context, groups);
    RunRecord record;
    record.topology = describe_topology(context);
    const plan::ParallelismController controller = controller_for_nodes(
        context.config, context.controller, nodes_of_hosts(record.topology.map, hosts));
    verification::derive_topology(controller, record.topology);
    for (PlaceRecord& place : record.topology.map) place.host = hosts[place.world_rank];
    record.program_version = HPCAI500_VERSION;
    record.name = context.config.run.name;
    record.parameters =
        verification::summary_settings(context.config, controller.layout(), launch.precision);
    record.workload = describe_workload(run);
    record.config.text = config::to_json(config::parse(context.config_text, "config.yaml", {}));
    record.submission = verification::describe_submission(context.config);
    record.flops = verification::flops_of_model(context.config);
    record.time.started_utc = launch.started_utc;
    record.time.startup_seconds = outcome.startup_seconds;
    if (auto& seconds = record.time.startup_seconds.value) {
        *seconds -= launch.staging_seconds.value.value_or(0);
    }
    add_staging(launch, record);
    record.time.vote_seconds = {ensemble.seconds, ""};
    record.time.total_seconds = outcome.total_seconds;
    record.environment = launch.environment;
    record.invocations = launch.invocations;
    record.roofline = launch.roofline;
    record.quality =
        ensemble.members.empty()
            ? workloads::missing_quality(workloads::workload_of(context.config.workload).metric,
                                         "no group finished")
            : ensemble.quality;
    record.search = search_of(run, groups);
    verification::derive_results(context.config, controller, groups, record);
    verification::derive_energy(context.config.run, groups, record);
    record.determinism = launch.determinism;
    add_verdict(context, outcome, groups, record);
    return record;
}

}  // namespace hpcai::results
