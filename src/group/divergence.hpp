// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <hpcai/context/run_context.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/training/replica_audit.hpp>

namespace hpcai::group {

/// Returns the record of a failed audit, with the world ranks and hosts of this rank's group.
AuditRecord failed_audit(const context::RunContext& context,
                         const training::Divergence& divergence);

/// Describes a failed audit in one line: the step, what differs, and on which ranks. `ranks` is the
/// number of ranks that hold an affected shard.
std::string describe_divergence(const AuditRecord& audit, int ranks);

}  // namespace hpcai::group
