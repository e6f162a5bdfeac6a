// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/base/clock.hpp>
#include <hpcai/context/run_context.hpp>

namespace hpcai::group {

/// Returns how long the leader of a group that trained for `training_seconds` waits for other
/// leaders: half of that time, but at least run.group_timeout_seconds. Other groups may have larger
/// bootstrap samples or slower nodes.
double peer_wait_seconds(const config::RunConfig& run, double training_seconds);

/// Returns whether a group's progress shows that it works and does not hang.
bool is_group_active(const context::RunContext& context, int group);

/// Observes the other groups of a run through their files. A rank of a failed group uses it to stay
/// alive while its exit would end the processes of other groups.
class PeerGroups {
public:
    /// `context` outlives the object.
    explicit PeerGroups(const context::RunContext& context) : context_(context) {}

    /// Returns whether no other group needs this process: the result has existed for some seconds,
    /// or all other groups have been idle for longer than leaders wait for each other. True at once
    /// if there are no other groups. Call it repeatedly.
    bool have_ended();

private:
    bool is_any_active() const;

    const context::RunContext& context_;
    Stopwatch since_activity_, since_result_;
    double active_seconds_ = context_.launch.since_start.seconds();  // at a peer's last activity
    bool has_result_ = false;
};

}  // namespace hpcai::group
