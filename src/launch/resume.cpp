// SPDX-License-Identifier: Apache-2.0
#include "resume.hpp"

#include <map>
#include <string>
#include <system_error>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/agreement.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/launch/environment.hpp>
#include <hpcai/results/directory_lock.hpp>
#include <hpcai/results/group_files.hpp>
#include <hpcai/results/launch_file.hpp>
#include <hpcai/results/report_files.hpp>
#include <hpcai/results/result_layout.hpp>
#include <hpcai/storage/manifest.hpp>

namespace hpcai::launch {
namespace {

namespace fs = std::filesystem;

/// Returns whether all groups contributed to the result in `folder` and their files are whole.
bool have_all_voted(const fs::path& folder, const config::Config& config, int groups) {
    try {
        for (const GroupRecord& group : results::read_result(folder).work.groups) {
            if (!group.failure.empty()) return false;
        }
    } catch (const Error&) {  // they can vote again
        return false;
    }
    for (int group = 0; group < groups; ++group) {
        if (!results::read_finished_group(folder, config.workload, group)) return false;
    }
    return true;
}

/// Gives all ranks the fact of rank 0, because any of them may write the result.
void share_fact(comm::Communicator& everyone, const char* name,
                std::map<std::string, std::string>& facts) {
    const auto found = facts.find(name);
    const std::string mine = found == facts.end() ? "" : "=" + found->second;
    const std::string shared = comm::broadcast(everyone, mine);
    if (!shared.empty()) facts[name] = shared.substr(1);
}

}  // namespace

void Resumption::check(const fs::path& folder, const config::Config& config,
                       const plan::Layout& layout) const {
    std::error_code error;
    const TopologyRecord& topology = begun.topology;
    require(layout.groups == topology.groups && layout.degree == topology.degree, ExitCode::launch,
            "{}: was begun with bagging.M {} and bagging.P_degree {}, and these {} ranks come to "
            "{} and {}; start `{}` with as many ranks a node",
            folder.string(), topology.groups, topology.degree, layout.ranks, layout.groups,
            layout.degree, results::resume_command(topology.ranks, folder));
    results::require_same_config(folder, config, begun);
    const bool has_result = fs::exists(folder / storage::kManifestName, error);  // written last
    require(!has_result || !have_all_voted(folder, config, layout.groups), ExitCode::usage,
            "{}: has a result of all {} groups; there is nothing to resume, and `hpcai500 verify` "
            "checks it",
            folder.string(), layout.groups);
    results::require_undamaged_groups(folder, config.workload, layout.groups, layout.degree);
}

Resumption agree_on_resumption(const context::RunRequest& request, comm::Communicator& everyone) {
    Resumption found;
    comm::collective_try(everyone, [&] {
        if (everyone.rank() != 0) return;
        require(fs::is_regular_file(fs::path(request.resume) / "config.yaml"), ExitCode::usage,
                "{}: expected the result directory of a run, with its config.yaml", request.resume);
        found.lock = results::lock_directory(request.resume, storage::FileLock::Kind::exclusive);
        found.begun = results::read_launch_file(request.resume);
        const int ranks = found.begun.topology.ranks;
        require(ranks == everyone.size(), ExitCode::launch,
                "{}: was begun with {} ranks, got {}; start it as `{}`", request.resume, ranks,
                everyone.size(), results::resume_command(ranks, request.resume));
    });
    found.begun.started_utc = comm::broadcast(everyone, found.begun.started_utc);
    share_fact(everyone, kFaultsFact, found.begun.environment);
    return found;
}

void Resumption::check_samples(const fs::path& output, data::SampleSets& samples,
                               comm::Communicator& everyone) const {
    comm::collective_try(everyone, [&] {
        if (everyone.rank() == 0) results::require_same_samples(output, samples, begun);
    });
    object_to_faults(begun.environment, samples);
}

}  // namespace hpcai::launch
