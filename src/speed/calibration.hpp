// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/base/roofline_record.hpp>
#include <hpcai/comm/gradient_reducer.hpp>

#include "operation_rates.hpp"

namespace hpcai::speed {

/// What whole steps are measured with.
struct CalibrationSetup {
    const config::Config& config;
    device::Precision precision;
    comm::GradientReducer* reducer = nullptr;  // over all ranks; null: one rank sums nothing
    int samples = 1;                           // of a rank in a step
};

/// Whole training steps of the configured model on all ranks at once: with `samples` on each, and
/// with a half and a quarter of these while about `seconds` last; where ranks sum, steps with sums
/// of as many samples, too. Collective.
CalibrationRecord calibrate(RateMeter& meter, const CalibrationSetup& setup, double seconds);

}  // namespace hpcai::speed
