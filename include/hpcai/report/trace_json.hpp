// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <hpcai/records/step_record.hpp>

namespace hpcai::report {

/// One rank's events in `groups/<m>/trace.json`, one per line and separated by commas, in the Trace
/// Event Format of Perfetto and Chrome. The format's processes are ranks here, its threads are
/// TraceLanes; all-reduces, which may overlap, are asynchronous events. Times are microseconds of
/// the rank's clock plus `offset_seconds`.
std::string trace_events(const RankTrace& rank, double offset_seconds);

/// The complete file from the events of all ranks.
std::string trace_json(std::span<const std::string> ranks);

}  // namespace hpcai::report
