// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/base/clock.hpp>
#include <hpcai/context/run_context.hpp>

namespace hpcai::group {

/// How long the leader of a group that has trained for `training_seconds` waits for the others:
/// groups differ by the size of their bootstrap and the speed of their nodes; one that takes half
/// as long again is given up.
double seconds_for_others(const config::RunConfig& run, double training_seconds);

/// The other groups of a run, by their files, for a rank that can do no more than not end their
/// processes by its own end.
class PeerGroups {
public:
    /// `start` outlives it.
    explicit PeerGroups(const context::RunContext& context) : context_(context) {}

    /// Whether no other group needs this rank's launch any more: the result is there, for some
    /// seconds, or none trains or evaluates, for longer than leaders wait for each other; at once
    /// where there are no others. To be asked again and again.
    bool have_ended();

private:
    bool is_any_at_work() const;

    const context::RunContext& context_;
    Stopwatch since_begin_, since_work_, since_result_;
    bool has_result_ = false;
};

}  // namespace hpcai::group
