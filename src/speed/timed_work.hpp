// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <hpcai/device/device.hpp>

namespace hpcai::speed {

using Work = std::function<void()>;

/// Times pieces of work by the device's clock. A device that can capture work replays them as one.
class TimedWork {
public:
    /// Each of `pieces` enqueues work. Work with an upload (`has_upload`) cannot be captured.
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
    std::unique_ptr<device::Recording> recording_;  // refers to timeline_, so it is destroyed first
};

/// Returns the median result of `calls` calls of `measure`.
double median_seconds(int calls, const std::function<double()>& measure);

/// Returns how often to run `work`, which has no upload, between two marks. On a device that
/// captures work, whose clock is coarse, returns 1 to 20 runs that take about a millisecond, and
/// first runs `work`, because libraries may allocate. Returns 1 on any other device.
int runs_in_a_row(device::Device& device, const Work& work);

}  // namespace hpcai::speed
