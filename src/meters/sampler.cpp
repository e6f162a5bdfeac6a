// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <utility>

#include <hpcai/meters/sampler.hpp>

namespace hpcai::meters {

Sampler::Sampler(CounterLog log, double seconds_between) : log_(std::move(log)) {
    log_.take(clock_.seconds());
    thread_ = std::thread([this, seconds_between] { run(seconds_between); });
}

Sampler::~Sampler() {
    stop();
}

void Sampler::run(double seconds_between) {
    const std::chrono::duration<double> pause(seconds_between);
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, pause, [this] { return stops_; })) log_.take(clock_.seconds());
}

void Sampler::stop() {
    if (!thread_.joinable()) return;
    {
        const std::lock_guard lock(mutex_);
        stops_ = true;
    }
    wake_.notify_all();
    thread_.join();
}

std::vector<CounterRecord> Sampler::finish() {
    stop();
    log_.take(clock_.seconds());
    return log_.records();
}

}  // namespace hpcai::meters
