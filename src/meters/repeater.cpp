// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <utility>

#include <hpcai/meters/repeater.hpp>

namespace hpcai::meters {

Repeater::Repeater(Repeated calls) : thread_([this, calls = std::move(calls)] { run(calls); }) {}

void Repeater::run(const Repeated& calls) {
    const std::chrono::duration<double> pause(calls.seconds_between);
    calls.begin();
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, pause, [this] { return stops_; })) calls.again();
}

void Repeater::stop() {
    if (!thread_.joinable()) return;
    {
        const std::lock_guard lock(mutex_);
        stops_ = true;
    }
    wake_.notify_all();
    thread_.join();
}

}  // namespace hpcai::meters
