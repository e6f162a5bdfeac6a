// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include <hpcai/meters/repeater.hpp>

namespace hpcai::meters {
namespace {

constexpr double kSecondsToEnd = 5;

using Seconds = std::chrono::duration<double>;

}  // namespace

struct Repeater::State {
    std::mutex mutex;
    std::condition_variable wake;
    bool stops = false;
    bool has_ended = false;
};

Repeater::Repeater(Repeated calls)
    : state_(std::make_shared<State>()),
      thread_([state = state_, calls = std::move(calls)] { run(*state, calls); }) {}

Repeater::~Repeater() {
    stop_within(kSecondsToEnd);
}

void Repeater::run(State& state, const Repeated& calls) {
    calls.begin();
    std::unique_lock lock(state.mutex);
    while (!state.wake.wait_for(lock, Seconds(calls.seconds_between),
                                [&state] { return state.stops; })) {
        lock.unlock();  // so that a hanging call does not block stop_within()
        calls.again();
        lock.lock();
    }
    lock.unlock();
    calls.end();
    lock.lock();
    state.has_ended = true;
    state.wake.notify_all();
}

bool Repeater::stop_within(double seconds) {
    if (!thread_.joinable()) return has_stopped_;
    {
        std::unique_lock lock(state_->mutex);
        state_->stops = true;
        state_->wake.notify_all();
        has_stopped_ =
            state_->wake.wait_for(lock, Seconds(seconds), [this] { return state_->has_ended; });
    }
    if (has_stopped_) {
        thread_.join();
    } else {
        thread_.detach();
    }
    return has_stopped_;
}

}  // namespace hpcai::meters
