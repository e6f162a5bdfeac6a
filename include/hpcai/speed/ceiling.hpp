// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <hpcai/context/run_context.hpp>
#include <hpcai/records/roofline_record.hpp>

namespace hpcai::speed {

/// Returns the ceiling in `precision` from measured rates: the fastest large matrix product or the
/// fastest of the model's own convolutions. Values are empty if nothing of that precision was
/// measured.
CeilingRecord ceiling_from(const std::vector<OperationRate>& rates, const std::string& precision);

/// Finds the ceiling by run.roofline: measures for about two seconds on all ranks at once, reads
/// the file, or returns the reason why there is none. Throws Error(data), on all ranks, for an
/// invalid or unreadable file. Collective.
CeilingRecord find_ceiling(const context::RunContext& context, const context::Resources& resources,
                           comm::Communicator& everyone);

}  // namespace hpcai::speed
