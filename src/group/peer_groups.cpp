// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include <hpcai/group/peer_groups.hpp>
#include <hpcai/results/group_files.hpp>
#include <hpcai/storage/manifest.hpp>

namespace hpcai::group {
namespace {

constexpr double kSecondsToLeave = 10;    // until other ranks have exited after the result
constexpr double kSilentSeconds = 3600;   // as long as the longest wait of a rank for other ranks
constexpr double kSecondsOfVote = 10;     // besides the wait for absent groups
constexpr double kShareOfTraining = 0.5;  // that leaders wait for other leaders

bool is_active(const ProgressRecord& progress) {
    const bool is_under_way =
        progress.state == ProgressState::training || progress.state == ProgressState::evaluating;
    const auto now =
        std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch());
    return is_under_way &&
           now.count() - static_cast<double>(progress.written_unix_seconds) < kSilentSeconds;
}

}  // namespace

double seconds_for_others(const config::RunConfig& run, double training_seconds) {
    return std::max(run.group_timeout_seconds, kShareOfTraining * training_seconds);
}

bool PeerGroups::is_any_at_work() const {
    for (int group = 0; group < context_.controller.layout().groups; ++group) {
        if (group == context_.place.group) continue;
        const GroupProgress found = results::read_progress(context_.output, group);
        if (!found.progress || !is_active(*found.progress)) continue;
        if (results::describe_hang(context_.output, group).empty()) return true;
    }
    return false;
}

bool PeerGroups::have_ended() {
    if (context_.controller.layout().groups == 1) return true;
    std::error_code error;
    const bool has_result =
        std::filesystem::exists(context_.output / storage::kManifestName, error);
    if (!std::exchange(has_result_, has_result)) since_result_.restart();
    if (has_result) return since_result_.seconds() > kSecondsToLeave;
    if (is_any_at_work()) {
        since_work_.restart();
        return false;
    }
    const double grace = seconds_for_others(context_.config.run, since_begin_.seconds());
    return since_work_.seconds() > grace + kSecondsOfVote;
}

}  // namespace hpcai::group
