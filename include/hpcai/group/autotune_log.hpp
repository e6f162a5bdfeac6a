// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <hpcai/base/log.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/device/device.hpp>

namespace hpcai::group {

/// Logs that a device times kernels while a network is built, which can take minutes.
class AutotuneLog {
public:
    /// Logs one line if the device tunes. `before` is its tuning so far; empty if it does not tune.
    /// `log` must outlive the object.
    AutotuneLog(std::optional<device::Tuning> before, Logger& log) : before_(before), log_(log) {
        if (before) {
            log.info(
                "device.autotune: timing the convolutions that are not in device.plan_cache, which "
                "can take minutes");
        }
    }
    /// Logs how much was timed since the construction. `after` is the device's tuning now.
    void finish(std::optional<device::Tuning> after) const {
        if (!before_ || !after) return;
        if (after->convolutions == before_->convolutions) {
            log_.info("device.autotune: no convolution had to be timed");
            return;
        }
        log_.info("device.autotune: timed {} of convolutions in {:.1f} s",
                  counted(after->convolutions - before_->convolutions, "pass"),
                  after->seconds - before_->seconds);
    }

private:
    std::optional<device::Tuning> before_;
    Logger& log_;
};

}  // namespace hpcai::group
