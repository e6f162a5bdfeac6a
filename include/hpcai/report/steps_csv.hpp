// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hpcai/records/step_record.hpp>

namespace hpcai::report {

/// The text of `groups/<m>/steps.csv`: a header, then a line for each step. Numbers have as many
/// digits as bring the same double back; one that is not there, or not finite, is an empty cell.
std::string steps_to_csv(std::span<const StepRecord> steps);

/// The steps in such a text; `name` stands in messages. Throws Error(data) naming the line and
/// column, what came and what is legal: for another header, a line with more or fewer cells, a cell
/// that is no number, steps that are not 0, 1, 2, ..., and times or epochs that go back.
std::vector<StepRecord> steps_from_csv(std::string_view text, std::string_view name = "steps.csv");

}  // namespace hpcai::report
