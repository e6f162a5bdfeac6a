// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include <hpcai/records/step_record.hpp>

/// CSV of any table, and a group's `groups/<m>/steps.csv` and `groups/<m>/ranks.csv`, which have a
/// header and a line for each record. Numbers are exact; missing and non-finite numbers are empty
/// cells. Readers throw Error(data) for an empty text, a wrong header or number of cells, a missing
/// newline or an invalid cell. The message has the file `name`; the line, unless the text is empty;
/// for an invalid cell also column, value and legal values.
namespace hpcai::report {

std::string steps_to_csv(std::span<const StepRecord> steps);

/// Also throws unless steps are 0, 1, 2, ..., times do not decrease and epochs grow by 0 or 1.
std::vector<StepRecord> steps_from_csv(std::string_view text, std::string_view name = "steps.csv");

std::string ranks_to_csv(std::span<const RankRecord> ranks);

/// Also throws unless ranks are 0, 1, 2, ... and no number is negative.
std::vector<RankRecord> ranks_from_csv(std::string_view text, std::string_view name = "ranks.csv");

/// Returns a host's name as it is in ranks.csv: spaces, commas, quotes and characters that are not
/// printable ASCII become underscores.
std::string csv_name(const std::string& name);

/// Returns CSV by RFC 4180 of `json`, the text of an array of objects. A column is the path of a
/// value, such as "config.run.seed". Numbers have all digits; null is empty; the elements of an
/// array are separated by semicolons. An apostrophe precedes a text that a spreadsheet would treat
/// as a formula. Empty arrays, arrays of objects, and "<key>_reason" next to "<key>" have no
/// column.
std::string csv_of_json(std::string_view json);

}  // namespace hpcai::report
