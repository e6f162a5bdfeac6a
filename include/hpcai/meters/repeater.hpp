// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <thread>

namespace hpcai::meters {

struct Repeated {
    std::function<void()> begin = [] {};  // once, before the others
    std::function<void()> again;
    std::function<void()> end = [] {};  // once, after the others
    double seconds_between = 1;
};

/// Makes calls, which may not throw, in a thread of its own from its construction on. A call may
/// hang, as one of the driver of a GPU that is gone: what calls use is theirs, or shared with them.
class Repeater {
public:
    explicit Repeater(Repeated calls);
    Repeater(const Repeater&) = delete;
    Repeater& operator=(const Repeater&) = delete;
    /// Waits for a few seconds.
    ~Repeater();

    /// Stops the calls: afterwards none is made or under way, and `begin` and `end` have been made.
    /// Where that takes longer than `seconds` it returns false and detaches the thread.
    bool stop_within(double seconds);

private:
    struct State;
    static void run(State& state, const Repeated& calls);

    std::shared_ptr<State> state_;
    std::thread thread_;
    bool has_stopped_ = false;
};

}  // namespace hpcai::meters
