// SPDX-License-Identifier: Apache-2.0
#include <hpcai/base/units.hpp>
#include <hpcai/group/autotune_log.hpp>

namespace hpcai::group {

AutotuneLog::AutotuneLog(std::optional<device::Tuning> before, Logger& log)
    : before_(before), log_(log) {
    if (before) {
        log.info(
            "device.autotune: convolutions that are not in device.plan_cache are timed now, which "
            "can take minutes");
    }
}

void AutotuneLog::finish(std::optional<device::Tuning> after) const {
    if (!before_ || !after) return;
    if (after->convolutions == before_->convolutions) {
        log_.info("device.autotune: all convolutions were timed before");
        return;
    }
    log_.info("device.autotune: timed {} and gradients of them in {:.1f} s",
              counted(after->convolutions - before_->convolutions, "convolution"),
              after->seconds - before_->seconds);
}

}  // namespace hpcai::group
