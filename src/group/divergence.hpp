// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <hpcai/base/run_record.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/training/replica_audit.hpp>

namespace hpcai::group {

/// The audit that failed, with the world ranks and hosts of this rank's group.
AuditRecord failed_audit(const context::RunContext& context,
                         const training::Divergence& divergence);

/// Why a group ends, in one line: the step, what differs, and on which of the `ranks` ranks that
/// were compared with them.
std::string describe_divergence(const AuditRecord& audit, int ranks);

}  // namespace hpcai::group
