// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <hpcai/base/log.hpp>
#include <hpcai/device/tuning.hpp>

namespace hpcai::group {

/// Tells a log that a device may time kernels while a network is built, which takes minutes.
class AutotuneLog {
public:
    /// One line unless `before`, the tuning of the device, is nothing. The log outlives the note.
    AutotuneLog(std::optional<device::Tuning> before, Logger& log);
    /// How much was timed since then, by the tuning `after`.
    void finish(std::optional<device::Tuning> after) const;

private:
    std::optional<device::Tuning> before_;
    Logger& log_;
};

}  // namespace hpcai::group
