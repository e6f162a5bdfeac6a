// SPDX-License-Identifier: Apache-2.0
#include "record.hpp"

#include <algorithm>
#include <iostream>
#include <string>

#include <hpcai/base/text.hpp>
#include <hpcai/config/writer.hpp>
#include <hpcai/report/ranks_csv.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/verification/derive.hpp>
#include <hpcai/verification/energy.hpp>
#include <hpcai/verification/judge.hpp>
#include <hpcai/verification/submission.hpp>

#include "earlier_places.hpp"
#include "result_layout.hpp"
#include "result_reader.hpp"
#include "workload.hpp"

namespace hpcai::benchmark {
namespace {

constexpr std::size_t kTableLimitBytes = std::size_t{64} << 20;

WorkloadRecord workload(const Start& start) {
    WorkloadRecord record = verification::describe_workload(start.config);
    record.precision = name_of(start.precision);
    record.training_samples = start.samples.training->samples();
    record.validation_samples = start.samples.validation->samples();
    record.data_objections = start.samples.objections;
    return record;
}

/// Results of all M groups in order; a group that did not vote is known by its status, and by what
/// it may have stored.
std::vector<GroupResult> all_groups(const Start& start, const Vote& vote,
                                    const std::vector<comm::GroupStatus>& statuses) {
    std::vector<GroupResult> results;
    for (const comm::GroupStatus& status : statuses) {
        const auto voted = std::find_if(
            vote.members.begin(), vote.members.end(),
            [&](const GroupResult& result) { return result.record.group == status.group; });
        if (voted != vote.members.end()) {
            results.push_back(*voted);
            continue;
        }
        GroupResult lost =
            read_failed_group(start.output, status.group, start.controller.layout().degree);
        if (lost.record.failure.empty()) lost.record.failure = status.reason_text();
        if (lost.record.failure.empty()) lost.record.failure = hang_of(start.output, status.group);
        if (lost.record.failure.empty()) lost.record.failure = "not heard of at the end";
        results.push_back(std::move(lost));
    }
    return results;
}

void add_quality(const Start& start, const Vote& vote, const std::vector<GroupResult>& groups,
                 RunRecord& record) {
    record.quality = vote.quality;
    record.quality.metric = verification::metric_of(start.config.workload);
    verification::derive_members(start.config, groups, record.quality);
}

void add_staging(const data::SampleSets& samples, RunRecord& record) {
    record.staging = samples.staging;
    if (record.staging.scope == "none") {
        record.time.staging_seconds = {std::nullopt,
                                       "data are read where they lie; nothing is staged"};
        return;
    }
    record.time.staging_seconds = {samples.staging_seconds, ""};
}

void add_verdict(const Start& start, const Closing& closing, const std::vector<GroupResult>& groups,
                 RunRecord& record) {
    verification::VerdictFacts facts = verification::facts_of(record, groups);
    for (std::size_t index = 0; index < groups.size(); ++index) {
        if (groups[index].record.failure.empty()) continue;
        // Who has only the group's files knows no other code.
        const bool has_diverged = groups[index].record.audit.diverged_at_step > 0;
        facts.failure_codes.push_back(has_diverged ? ExitCode::invalid
                                                   : closing.groups[index].exit_code);
    }
    record.verdict = verification::judge(start.config, facts);
    verification::echo_facts(record.staging, facts.bad_samples, record.parameters);
}

/// By world rank. Groups that another program has finished may have been on other nodes than those
/// of this one.
std::vector<std::string> hosts_of(const Start& start, const std::vector<GroupResult>& groups) {
    std::vector<std::string> hosts = start.hostnames;
    for (const GroupResult& group : groups) {
        if (!start.resumes || !group.record.failure.empty()) continue;
        const int number = group.record.group;
        const auto file = group_directory(start.output, number) / "ranks.csv";
        try {
            const auto bytes = storage::read_file_bytes(file, kTableLimitBytes);
            for (const RankRecord& rank :
                 report::ranks_from_csv(storage::text_of(bytes), file.string())) {
                if (rank.group_rank >= start.controller.layout().degree) continue;  // verify tells
                const int world_rank = start.controller.world_rank_of(number, rank.group_rank);
                std::string& host = hosts[static_cast<std::size_t>(world_rank)];
                if (report::table_name(host) != rank.host) host = rank.host;
            }
        } catch (const Error& error) {
            std::cerr << fmt::format(
                "hpcai500: {}; the result names the hosts of this program for group {}\n",
                printable(error.what()), number);
        }
    }
    return hosts;
}

/// Of the ranks on these hosts.
plan::ParallelismController controller_of(const Start& start,
                                          const std::vector<std::string>& hosts) {
    NodesOfRanks now{{}, start.hostnames};
    for (int rank = 0; rank < start.controller.layout().ranks; ++rank) {
        now.nodes.push_back(start.controller.place(rank).node);
    }
    return controller_on(start.config, start.controller, nodes_of_hosts(now, hosts));
}

TopologyRecord describe_topology(const plan::ParallelismController& controller,
                                 const std::vector<RankFacts>& ranks,
                                 const std::vector<std::string>& hosts) {
    TopologyRecord record;
    const plan::LayoutSummary summary = controller.summary();
    record.ranks = summary.layout.ranks;
    record.groups = summary.layout.groups;
    record.degree = summary.layout.degree;
    record.nodes = summary.nodes;
    for (int rank = 0; rank < record.ranks; ++rank) {
        const plan::RankPlace& place = controller.place(rank);
        const auto index = static_cast<std::size_t>(rank);
        record.map.push_back({rank, place.group, place.group_rank, place.node, place.node_rank,
                              ranks[index].threads, hosts[index], ranks[index].device});
    }
    return record;
}

}  // namespace

TopologyRecord describe_topology(const Start& start) {
    return describe_topology(start.controller, start.ranks, start.hostnames);
}

RunRecord make_record(const Start& start, const Vote& vote, const Closing& closing) {
    const std::vector<GroupResult> groups = all_groups(start, vote, closing.groups);
    const std::vector<std::string> hosts = hosts_of(start, groups);
    const plan::ParallelismController controller = controller_of(start, hosts);
    RunRecord record;
    record.program_version = HPCAI500_VERSION;
    record.name = start.config.run.name;
    record.parameters = verification::echo_settings(start.config, controller.layout(),
                                                    std::string(name_of(start.precision)));
    record.topology = describe_topology(controller, start.ranks, hosts);
    record.workload = workload(start);
    record.config = config::to_yaml(start.config);
    record.submission = verification::describe_submission(start.config);
    record.flops = verification::flops_of_model(start.config);
    record.time.started_utc = start.started_utc;
    record.time.startup_seconds = closing.startup_seconds;
    if (auto& seconds = record.time.startup_seconds.value) {
        *seconds -= start.samples.staging_seconds;
    }
    add_staging(start.samples, record);
    record.time.vote_seconds = {vote.seconds, ""};
    record.time.total_seconds = closing.total_seconds;
    record.environment = start.environment;
    verification::derive_work(groups, record);
    add_quality(start, vote, groups, record);
    verification::derive_scores(record);
    verification::derive_time_to_quality(start.config, record);
    record.roofline = start.ceiling;
    record.utilization =
        verification::utilization_of(start.ceiling, record.scores.flops, record.topology.ranks);
    verification::derive_communication(start.config, controller, groups, record);
    verification::derive_energy(start.config.run, groups, record);
    verification::derive_parallel(start.config, controller.layout(), groups, record);
    verification::derive_time_breakdown(record);
    record.determinism = start.determinism;
    add_verdict(start, closing, groups, record);
    return record;
}

}  // namespace hpcai::benchmark
