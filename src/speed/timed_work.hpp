// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <hpcai/device/device.hpp>

namespace hpcai::speed {

using Work = std::function<void()>;

/// Pieces of work timed by the device's clock, which sees no time of launches where they are
/// recorded.
class TimedWork {
public:
    /// `pieces` enqueue work; with an upload among them they cannot be recorded.
    TimedWork(device::Device& device, std::vector<Work> pieces, bool has_upload = false);
    TimedWork(const TimedWork&) = delete;
    TimedWork& operator=(const TimedWork&) = delete;

    /// Does the work; seconds of each piece.
    std::vector<double> run();

private:
    void enqueue();

    device::Device& device_;
    std::vector<Work> pieces_;
    std::unique_ptr<device::Timeline> timeline_;
    std::unique_ptr<device::Recording> recording_;  // goes before its marks
};

/// How often a piece of work without uploads is to be done in a row between two marks: on a device
/// that records, whose clock has long steps, as often as takes a millisecond, 1 to 20 times; else
/// once. There it is done before it is recorded: a first time may allocate in libraries.
int runs_in_a_row(device::Device& device, const Work& work);

}  // namespace hpcai::speed
