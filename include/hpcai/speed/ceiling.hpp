// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <hpcai/base/roofline_record.hpp>
#include <hpcai/context/run_context.hpp>

namespace hpcai::speed {

/// The ceiling in `precision` that these rates make: the fastest large matrix product or the
/// fastest of the model's own convolutions. None in it where nothing of that precision was
/// measured.
CeilingRecord ceiling_from(const std::vector<OperationRate>& rates, const std::string& precision);

/// What run.roofline says: measures about two seconds on all ranks at once, reads the file, or says
/// why there is none. Throws Error(data), on all ranks, for a file that cannot be read or is none.
/// Collective.
CeilingRecord find_ceiling(const context::RunContext& context, const context::Resources& resources,
                           comm::Communicator& everyone);

}  // namespace hpcai::speed
