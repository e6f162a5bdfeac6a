// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <ostream>
#include <set>
#include <utility>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/utsname.h>

#include <hpcai/base/clock.hpp>
#include <hpcai/benchmark/run.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/config/writer.hpp>
#include <hpcai/group/completed_group.hpp>
#include <hpcai/launch/environment.hpp>
#include <hpcai/results/directory_lock.hpp>
#include <hpcai/results/group_files.hpp>
#include <hpcai/results/launch_file.hpp>
#include <hpcai/results/result_directory.hpp>
#include <hpcai/results/result_layout.hpp>
#include <hpcai/storage/manifest.hpp>
#include <hpcai/verification/derive.hpp>
#include <hpcai/workloads/workload.hpp>

#include "result_files.hpp"

namespace hpcai::benchmark {
namespace {

namespace fs = std::filesystem;

struct StoredGroups {
    std::vector<group::GroupOutcome> finished;  // without predictions
    std::vector<comm::GroupStatus> statuses;    // of all groups
};

data::SampleSets open_samples(const context::RunContext& context, const LaunchRecord& launch) {
    const auto self = comm::make_self_communicator();
    data::SampleSets samples = data::make_sample_sets(context.config, *self);
    results::require_same_samples(context.output, samples, launch);
    if (launch.environment.contains(launch::kFaultsFact))
        launch::add_fault_injection_disqualification(samples);
    return samples;
}

/// Returns why a group has not finished, as its progress file states, or else `reason`.
std::string describe_unfinished(const fs::path& output, int group, int ranks, std::string reason) {
    const GroupProgress found = results::read_progress(output, group);
    const ProgressRecord progress = found.progress.value_or(ProgressRecord{});
    if (!progress.reason.empty()) {
        reason = progress.reason;
    } else if (found.progress && progress.state != ProgressState::finished) {  // the group has died
        reason = fmt::format("{} at step {} of {} on {} in its last report, at {:%FT%TZ}",
                             word_of(progress.state), progress.step, progress.steps, progress.host,
                             fmt::gmtime(static_cast<std::time_t>(progress.written_unix_seconds)));
    }
    const std::int64_t step = results::last_checkpoint(output, group, ranks);
    return step > 0 ? fmt::format("{}; has a checkpoint of step {}", reason, step) : reason;
}

StoredGroups read_groups(const fs::path& output, const config::Config& config,
                         const TopologyRecord& topology) {
    StoredGroups groups;
    for (int group = 0; group < topology.groups; ++group) {
        std::string reason;
        if (auto result = results::read_finished_group(output, config, group, &reason)) {
            groups.statuses.push_back(comm::GroupStatus::of(group, comm::GroupState::completed));
            group::GroupOutcome& outcome = groups.finished.emplace_back();
            outcome.result = std::move(*result);
            outcome.status = groups.statuses.back();
        } else {
            groups.statuses.push_back(comm::GroupStatus::of(
                group, comm::GroupState::failed, ExitCode::internal,
                describe_unfinished(output, group, topology.degree, std::move(reason))));
        }
    }
    return groups;
}

void require_finished_groups(const ScoreRequest& request, const StoredGroups& groups,
                             const LaunchRecord& launch) {
    constexpr std::size_t kMaxNamed = 8;
    std::vector<std::string> missing;
    for (const comm::GroupStatus& status : groups.statuses) {
        if (status.state == comm::GroupState::completed) continue;
        missing.push_back(fmt::format("group {}: {}", status.group, status.reason_text()));
    }
    if (missing.size() > kMaxNamed) {
        const std::size_t more = missing.size() - kMaxNamed;
        missing.resize(kMaxNamed);
        missing.push_back(fmt::format("and {} more", more));
    }
    const std::string resume =
        results::resume_command(launch.topology.ranks, launch.environment, request.directory);
    require(!groups.finished.empty(), ExitCode::all_groups_failed,
            "{}: no group has finished ({}); `{}` resumes the groups", request.directory,
            fmt::join(missing, "; "), resume);
    require(missing.empty() || request.allow_partial, ExitCode::partial,
            "{}: {} of {} groups have finished ({}); `{}` resumes the others, and with "
            "--allow-partial the finished groups vote without them",
            request.directory, groups.finished.size(), groups.statuses.size(),
            fmt::join(missing, "; "), resume);
}

/// Combines the members' predictions. For each member, a thread of this process acts as leader.
results::EnsembleResult combine(const results::LaunchedRun& run,
                                std::vector<group::GroupOutcome>& members) {
    const config::Config& config = run.context.config;
    const int threads = device::count_cores().allowed;
    results::EnsembleResult ensemble;
    comm::run_as_threads(static_cast<int>(members.size()), [&](comm::Communicator& leaders) {
        group::GroupOutcome& member = members[leaders.rank()];
        group::load_predictions(run.context, run.samples, threads, member);
        if (config.bagging.sampler == config::Sampler::none) {  // no sample is out of bag
            member.predictions.out_of_bag.resize(
                static_cast<std::size_t>(run.samples.training->samples()));
        }
        results::EnsembleResult combined =
            combine_members(*workloads::make_evaluator(config, run.samples), member, leaders);
        if (leaders.rank() == 0) ensemble = std::move(combined);
    });
    return ensemble;
}

}  // namespace

ExitCode score_run(const ScoreRequest& request, const std::string& command_line,
                   std::ostream& out) {
    const fs::path output = request.directory;
    results::require_one_run(output);
    const auto lock = results::lock_directory(output, storage::FileLock::Kind::exclusive);
    require(!storage::path_exists(output / storage::kManifestName), ExitCode::usage,
            "{}: has a result, which is not overwritten; `hpcai500 verify` checks it, and "
            "`hpcai500 resume` trains its failed groups",
            output.string());
    config::Config config = results::read_config(output);
    LaunchRecord launch = results::read_launch_file(output);
    results::require_same_config(output, config::to_yaml(config), launch);
    context::precision_named(launch.precision);  // throws if the precision is unknown
    StoredGroups groups = read_groups(output, config, launch.topology);
    require_finished_groups(request, groups, launch);
    const context::RunContext context =
        results::context_of(output, launch.topology, std::move(config));
    const data::SampleSets samples = open_samples(context, launch);
    const results::LaunchedRun run{context, launch, samples};
    const results::EnsembleResult ensemble = combine(run, groups.finished);
    std::set<int> undamaged_groups;
    for (const group::GroupOutcome& member : groups.finished)
        undamaged_groups.insert(member.status.group);
    results::archive_attempt(context, results::StaleRecords::unreadable, undamaged_groups);
    utsname system{};
    uname(&system);
    launch.invocations.push_back(
        {utc_now(), system.nodename, launch::binary_digest(), command_line});
    results::write_launch_file(output, launch);
    for (const int group : undamaged_groups) results::remove_group_checkpoints(output, group);
    const Quantity unknown = no_value(
        "the run ended without a result; `hpcai500 score` wrote the result from stored files");
    const results::RunOutcome outcome{groups.statuses, unknown, unknown};
    return write_result(run, ensemble, outcome, Origin::stored_groups, out).verdict.exit_code;
}

}  // namespace hpcai::benchmark
