// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include <hpcai/comm/gradient_reducer.hpp>

namespace hpcai::comm {

/// A reducer that adds to the sums of a step what rounding took away from those of the step before.
/// Between two steps only.
class ErrorFeedback {
public:
    virtual ~ErrorFeedback() = default;

    /// What the next sum of these values on this rank will have added to it, value by value; empty
    /// where nothing is rounded that way. May wait for the device.
    virtual std::vector<float> residual_of(std::span<float> device_values) = 0;

    /// Puts back what residual_of gave for the same values, here or in another program. Throws
    /// Error(internal) for another number of values.
    virtual void set_residual(std::span<float> device_values, std::span<const float> residual) = 0;
};

/// Null where nothing is fed back.
inline ErrorFeedback* error_feedback_of(GradientReducer& reducer) {
    return dynamic_cast<ErrorFeedback*>(&reducer);
}

}  // namespace hpcai::comm
