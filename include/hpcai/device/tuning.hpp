// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <hpcai/device/device.hpp>

namespace hpcai::device {

/// The work that a device has spent on timing kernels to choose among them.
struct Tuning {
    int convolutions = 0;  // forward and gradient passes whose plans were timed
    double seconds = 0;    // including trials of fused operations
};

/// An additional interface of a Device that times kernels in build() and accepts().
class Tuner {
public:
    virtual ~Tuner() = default;
    /// The work so far; absent if timing is disabled.
    virtual std::optional<Tuning> tuning() const = 0;
};

/// Returns the tuning of a device; absent if the device is not a Tuner.
inline std::optional<Tuning> tuning_of(const Device& device) {
    const auto* tuner = dynamic_cast<const Tuner*>(&device);
    return tuner == nullptr ? std::nullopt : tuner->tuning();
}

}  // namespace hpcai::device
