// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include <hpcai/records/trace_record.hpp>

namespace hpcai::report {

/// One rank's share of `groups/<m>/trace.json`: events, one a line, separated by commas, in the
/// Trace Event Format that Perfetto and Chrome show. A process is a rank, a thread a lane; sums,
/// which overlap, are asynchronous events. Times are microseconds, later by `offset_seconds` than
/// on the rank's clock.
std::string trace_events(const RankTrace& rank, double offset_seconds);

/// The whole file, from the shares of all ranks.
std::string trace_json(std::span<const std::string> ranks);

}  // namespace hpcai::report
