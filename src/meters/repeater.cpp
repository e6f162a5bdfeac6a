// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include <hpcai/meters/repeater.hpp>

namespace hpcai::meters {
namespace {

constexpr double kStopTimeoutSeconds = 5;

using Seconds = std::chrono::duration<double>;

}  // namespace

struct Repeater::State {
    std::mutex mutex;
    std::condition_variable wake;
    bool stop_requested = false;
    bool has_ended = false;
};

Repeater::Repeater(RepeaterCallbacks callbacks)
    : state_(std::make_shared<State>()),
      thread_([state = state_, callbacks = std::move(callbacks)] { run(*state, callbacks); }) {}

Repeater::~Repeater() {
    stop_within(kStopTimeoutSeconds);
}

void Repeater::run(State& state, const RepeaterCallbacks& callbacks) {
    callbacks.begin();
    std::unique_lock lock(state.mutex);
    while (!state.wake.wait_for(lock, Seconds(callbacks.interval_seconds),
                                [&state] { return state.stop_requested; })) {
        lock.unlock();  // so that a hanging callback does not block stop_within()
        callbacks.repeat();
        lock.lock();
    }
    lock.unlock();
    callbacks.end();
    lock.lock();
    state.has_ended = true;
    state.wake.notify_all();
}

bool Repeater::stop_within(double seconds) {
    if (!thread_.joinable()) return has_stopped_;
    {
        std::unique_lock lock(state_->mutex);
        state_->stop_requested = true;
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
