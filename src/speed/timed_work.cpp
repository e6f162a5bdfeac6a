// SPDX-License-Identifier: Apache-2.0
#include "timed_work.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <hpcai/base/median.hpp>

namespace hpcai::speed {

TimedWork::TimedWork(device::Device& device, std::vector<Work> pieces, bool has_upload)
    : device_(device), pieces_(std::move(pieces)) {
    if (has_upload || !device.can_record()) return;
    timeline_ = device.make_timeline();
    recording_ = device.record([this] { enqueue(); });
}

std::vector<double> TimedWork::run() {
    if (recording_ != nullptr) {
        recording_->run();
    } else {
        timeline_ = device_.make_timeline();
        enqueue();
    }
    return timeline_->seconds();
}

void TimedWork::enqueue() {
    timeline_->mark();
    for (const Work& piece : pieces_) {
        piece();
        timeline_->mark();
    }
}

double median_seconds(int calls, const std::function<double()>& measure) {
    std::vector<double> seconds;
    for (int call = 0; call < calls; ++call) seconds.push_back(measure());
    return median(std::move(seconds));
}

int runs_in_a_row(device::Device& device, const Work& work) {
    if (!device.can_record()) return 1;
    work();
    constexpr double kTargetSeconds = 1e-3, kMaxRepeats = 20;
    TimedWork once(device, {work});
    once.run();
    const double seconds = std::max(once.run()[0], kTargetSeconds / kMaxRepeats);
    return static_cast<int>(std::ceil(std::min(kTargetSeconds / seconds, kMaxRepeats)));
}

}  // namespace hpcai::speed
