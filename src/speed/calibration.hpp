// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/comm/gradient_reducer.hpp>
#include <hpcai/records/roofline_record.hpp>

#include "operation_rates.hpp"

namespace hpcai::speed {

/// The setup of a measurement of whole steps.
struct CalibrationSetup {
    const config::Config& config;
    device::Precision precision;
    comm::GradientReducer* reducer = nullptr;  // over all ranks; null: one rank sums nothing
    int samples = 1;                           // of a rank in a step
};

/// Measures whole training steps of the configured model on all ranks at once: with `samples` on
/// each, then with a half and a quarter of them while about `seconds` last. If ranks sum, measures
/// steps with sums, too. Collective.
CalibrationRecord calibrate(RateMeter& meter, const CalibrationSetup& setup, double seconds);

}  // namespace hpcai::speed
