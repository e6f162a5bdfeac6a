// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <system_error>
#include <utility>

#include <hpcai/group/peer_groups.hpp>
#include <hpcai/meters/utc.hpp>
#include <hpcai/results/group_files.hpp>
#include <hpcai/storage/manifest.hpp>

namespace hpcai::group {
namespace {

constexpr double kExitGraceSeconds = 10;  // from the result to the exit of the other ranks
constexpr double kSilentSeconds = 3600;   // from this age of its heartbeat, a group is inactive
constexpr double kEnsembleSeconds = 10;   // to evaluate the ensemble
constexpr double kTrainingShare = 0.5;    // leaders wait for this share of the training time

bool is_active(const ProgressRecord& progress) {
    const bool is_unfinished =
        progress.state == ProgressState::training || progress.state == ProgressState::evaluating;
    const auto written = static_cast<double>(progress.written_unix_seconds);
    return is_unfinished && meters::UtcClock().seconds() - written < kSilentSeconds;
}

}  // namespace

double peer_wait_seconds(const config::RunConfig& run, double training_seconds) {
    return std::max(run.group_timeout_seconds, kTrainingShare * training_seconds);
}

bool is_group_active(const context::RunContext& context, int group) {
    const GroupProgress found = results::read_progress(context.output, group);
    return found.progress && is_active(*found.progress) &&
           results::describe_hang(context.output, group).empty();
}

bool PeerGroups::is_any_active() const {
    for (int group = 0; group < context_.controller.layout().groups; ++group)
        if (group != context_.place.group && is_group_active(context_, group)) return true;
    return false;
}

bool PeerGroups::have_ended() {
    if (context_.controller.layout().groups == 1) return true;
    std::error_code error;
    const bool has_result = fs::exists(context_.output / storage::kManifestName, error);
    if (!std::exchange(has_result_, has_result)) since_result_.restart();
    if (has_result) return since_result_.seconds() > kExitGraceSeconds;
    if (is_any_active()) {
        since_activity_.restart();
        active_seconds_ = context_.launch.since_start.seconds();
        return false;
    }
    // No other group has trained for longer than the program had run when one was last active.
    const double grace = peer_wait_seconds(context_.config.run, active_seconds_);
    return since_activity_.seconds() > grace + kEnsembleSeconds;
}

}  // namespace hpcai::group
