// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/context/run_context.hpp>
#include <hpcai/records/roofline_record.hpp>

namespace hpcai::speed {

/// Returns the ceiling in `precision`: the larger of the measured rates of the fastest large matrix
/// product and the model's fastest convolution. A rate that was not measured has a reason.
CeilingRecord ceiling_from(const std::vector<OperationRate>& rates, const std::string& precision);

/// Finds the ceiling as run.roofline selects: measures for about two seconds on all ranks at once,
/// reads the roofline file, or, with "off", returns only the reason. Throws Error(data) on all
/// ranks for an invalid or unreadable file. Collective.
CeilingRecord find_ceiling(const context::RunContext& context, const context::Resources& resources,
                           comm::Communicator& everyone);

}  // namespace hpcai::speed
