// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hpcai/records/step_record.hpp>

namespace hpcai::report {

/// The text of `groups/<m>/ranks.csv`: a header, then a line for each rank. Numbers have as many
/// digits as bring the same double back; one that is not there, or not finite, is an empty cell.
std::string ranks_to_csv(std::span<const RankRecord> ranks);

/// The ranks in such a text; `name` stands in messages. Throws Error(data) naming the line and
/// column, what came and what is legal: for another header, a line with more or fewer cells, a cell
/// that is no number, negative times, and ranks that are not 0, 1, 2, ...
std::vector<RankRecord> ranks_from_csv(std::string_view text, std::string_view name = "ranks.csv");

/// A host's name as such a text has it: without what would end a cell.
std::string table_name(const std::string& name);

}  // namespace hpcai::report
