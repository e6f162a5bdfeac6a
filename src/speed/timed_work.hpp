// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <hpcai/device/device.hpp>

namespace hpcai::speed {

using Work = std::function<void()>;

/// Times pieces of work by the device's clock; on a device that records, without kernel launches.
class TimedWork {
public:
    /// `pieces` enqueue the work. With `has_upload` it is not recorded, because uploads cannot be.
    TimedWork(device::Device& device, std::vector<Work> pieces, bool has_upload = false);
    TimedWork(const TimedWork&) = delete;
    TimedWork& operator=(const TimedWork&) = delete;

    /// Runs the work and returns the seconds of each piece.
    std::vector<double> run();

private:
    void enqueue();

    device::Device& device_;
    std::vector<Work> pieces_;
    std::unique_ptr<device::Timeline> timeline_;
    std::unique_ptr<device::Recording> recording_;  // destroyed before its marks
};

/// Returns the median result of `calls` calls of `measure`.
double median_seconds(int calls, const std::function<double()>& measure);

/// Returns how often to run `work`, which has no upload, between two marks. A device that records
/// has a coarse clock: returns 1 to 20, for about a millisecond, and runs `work` before, because
/// libraries may allocate the first time. Any other device needs one run.
int runs_in_a_row(device::Device& device, const Work& work);

}  // namespace hpcai::speed
