// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <thread>

namespace hpcai::meters {

struct RepeaterCallbacks {
    std::function<void()> begin = [] {};  // called once, first
    std::function<void()> repeat;
    std::function<void()> end = [] {};  // called once, last
    double interval_seconds = 1;
};

/// Runs callbacks, which may not throw, in a separate thread from construction on. A callback may
/// hang, for example in the driver of a lost GPU. It must own or share all objects that it uses.
class Repeater {
public:
    explicit Repeater(RepeaterCallbacks callbacks);
    Repeater(const Repeater&) = delete;
    Repeater& operator=(const Repeater&) = delete;
    /// Calls stop_within(5).
    ~Repeater();

    /// Stops the callbacks. Returns true after `end` has been called; no callback runs from then
    /// on. If that takes longer than `seconds`, returns false and detaches the thread.
    bool stop_within(double seconds);

private:
    struct State;
    static void run(State& state, const RepeaterCallbacks& callbacks);

    std::shared_ptr<State> state_;
    std::thread thread_;
    bool has_stopped_ = false;
};

}  // namespace hpcai::meters
