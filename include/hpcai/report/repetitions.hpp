// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <hpcai/base/repetitions_record.hpp>

namespace hpcai::report {

/// The text of `repetitions.json`; as to_json of a RunRecord.
std::string to_json(const RepetitionsRecord& record);

/// The record in such a text; `name` stands in messages. Throws Error(data) as from_json of a
/// RunRecord does.
RepetitionsRecord repetitions_from_json(std::string_view text, std::string_view name);

/// The line that begins with REPETITIONS. `digest`: SHA-256 of repetitions.json.
std::string repetitions_line(const RepetitionsRecord& record, std::string_view digest);

/// A table of the runs with their medians, and that line.
std::string repetitions_table(const RepetitionsRecord& record, std::string_view digest);

}  // namespace hpcai::report
