// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <thread>

namespace hpcai::meters {

struct Repeated {
    std::function<void()> begin = [] {};  // called once, first
    std::function<void()> again;
    std::function<void()> end = [] {};  // called once, last
    double seconds_between = 1;
};

/// Runs callbacks, which may not throw, in a separate thread from construction on. A callback may
/// hang, for example in the driver of a lost GPU, so it must own or share all that it uses.
class Repeater {
public:
    explicit Repeater(Repeated calls);
    Repeater(const Repeater&) = delete;
    Repeater& operator=(const Repeater&) = delete;
    /// Calls stop_within(5).
    ~Repeater();

    /// Stops the callbacks. True: none is running or will run, and `begin` and `end` have been
    /// called. If this takes longer than `seconds`, returns false and detaches the thread.
    bool stop_within(double seconds);

private:
    struct State;
    static void run(State& state, const Repeated& calls);

    std::shared_ptr<State> state_;
    std::thread thread_;
    bool has_stopped_ = false;
};

}  // namespace hpcai::meters
