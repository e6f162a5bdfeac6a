// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hpcai/records/step_record.hpp>

/// The tables of a group, `groups/<m>/steps.csv` and `groups/<m>/ranks.csv`: a header, then a line
/// for each record. Numbers have as many digits as bring the same double back; one that is missing
/// or not finite is an empty cell. Readers throw Error(data) that names the line and column, the
/// value and what is legal: for another header, a line with more or fewer cells and a cell that is
/// no number. `name` stands for the file in messages.
namespace hpcai::report {

std::string steps_to_csv(std::span<const StepRecord> steps);

/// Also throws for steps that are not 0, 1, 2, ..., and times or epochs that go back.
std::vector<StepRecord> steps_from_csv(std::string_view text, std::string_view name = "steps.csv");

std::string ranks_to_csv(std::span<const RankRecord> ranks);

/// Also throws for ranks that are not 0, 1, 2, ..., and negative times.
std::vector<RankRecord> ranks_from_csv(std::string_view text, std::string_view name = "ranks.csv");

/// Returns a host's name as such a table has it: without characters that would end a cell.
std::string table_name(const std::string& name);

}  // namespace hpcai::report
