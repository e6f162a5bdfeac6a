// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <hpcai/device/device.hpp>

namespace hpcai::speed {

using Work = std::function<void()>;

/// Times pieces of work by the device's clock. Recorded work includes no time of launches.
class TimedWork {
public:
    /// `pieces` enqueue work, which cannot be recorded if it has an upload.
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

/// Returns the number of runs of `work`, without uploads, between two marks. A device that records
/// has a coarse clock, which needs 1 to 20 runs in about a millisecond; any other device needs one
/// run. Runs the work before on a device that records, because libraries may allocate the first
/// time.
int runs_in_a_row(device::Device& device, const Work& work);

}  // namespace hpcai::speed
