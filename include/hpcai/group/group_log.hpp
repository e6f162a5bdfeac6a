// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <hpcai/base/log.hpp>
#include <hpcai/context/run_context.hpp>

namespace hpcai::group {

/// What a rank says of its group: a leader writes groups/<m>/log.txt and shows warnings and errors
/// on standard error too; other ranks show those only. Throws Error(usage) when the file cannot be
/// opened.
std::unique_ptr<Logger> open_group_log(const context::RunContext& context);

}  // namespace hpcai::group
