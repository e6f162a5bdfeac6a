// SPDX-License-Identifier: Apache-2.0
#include <hpcai/base/units.hpp>
#include <hpcai/group/autotune_log.hpp>

namespace hpcai::group {

AutotuneLog::AutotuneLog(std::optional<device::Tuning> before, Logger& log)
    : before_(before), log_(log) {
    if (before) {
        log.info(
            "device.autotune: timing the convolutions that are not in device.plan_cache, which can "
            "take minutes");
    }
}

void AutotuneLog::finish(std::optional<device::Tuning> after) const {
    if (!before_ || !after) return;
    if (after->convolutions == before_->convolutions) {
        log_.info("device.autotune: no convolution had to be timed");
        return;
    }
    log_.info("device.autotune: timed {} and their gradients in {:.1f} s",
              counted(after->convolutions - before_->convolutions, "convolution"),
              after->seconds - before_->seconds);
}

}  // namespace hpcai::group
