// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <hpcai/base/log.hpp>
#include <hpcai/device/device.hpp>

namespace hpcai::group {

/// Logs that a device times kernels while a network is built, which can take minutes.
class AutotuneLog {
public:
    /// Logs one line if the device tunes. `before` is its tuning so far; empty if it does not tune.
    /// `log` must outlive the object.
    AutotuneLog(std::optional<device::Tuning> before, Logger& log);
    /// Logs how much was timed since the construction. `after` is the device's tuning now.
    void finish(std::optional<device::Tuning> after) const;

private:
    std::optional<device::Tuning> before_;
    Logger& log_;
};

}  // namespace hpcai::group
