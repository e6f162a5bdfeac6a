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
    /// `pieces` enqueue work; with an upload among them they cannot be recorded.
    TimedWork(device::Device& device, std::vector<Work> pieces, bool has_upload = false);
    TimedWork(const TimedWork&) = delete;
    TimedWork& operator=(const TimedWork&) = delete;

    /// Does the work and returns the seconds of each piece.
    std::vector<double> run();

private:
    void enqueue();

    device::Device& device_;
    std::vector<Work> pieces_;
    std::unique_ptr<device::Timeline> timeline_;
    std::unique_ptr<device::Recording> recording_;  // goes before its marks
};

/// Returns the median of the seconds that `measure` returns in so many calls.
double median_seconds(int calls, const std::function<double()>& measure);

/// Returns how often to repeat a piece of work without uploads between two marks. The clock of a
/// device that records is coarse: 1 to 20 times, as many as take a millisecond; else once. Such a
/// device does the work once before, because libraries may allocate the first time.
int runs_in_a_row(device::Device& device, const Work& work);

}  // namespace hpcai::speed
