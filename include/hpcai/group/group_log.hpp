// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <hpcai/base/log.hpp>
#include <hpcai/context/run_context.hpp>

namespace hpcai::group {

/// Opens the log of a rank. A leader writes groups/<m>/log.txt, and warnings and errors to standard
/// error, too; other ranks write only the latter. Throws Error(usage) if the file cannot be opened.
std::unique_ptr<Logger> open_group_log(const context::RunContext& context);

}  // namespace hpcai::group
