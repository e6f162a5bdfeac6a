// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace hpcai::meters {

struct Repeated {
    std::function<void()> begin = [] {};  // once, before the others
    std::function<void()> again;
    double seconds_between = 1;
};

/// Makes calls, which may not throw, in a thread of its own from its construction on.
class Repeater {
public:
    explicit Repeater(Repeated calls);
    Repeater(const Repeater&) = delete;
    Repeater& operator=(const Repeater&) = delete;
    ~Repeater() { stop(); }

    /// Behind it no call is made and none is under way; `begin` has been made.
    void stop();

private:
    void run(const Repeated& calls);

    std::mutex mutex_;
    std::condition_variable wake_;
    bool stops_ = false;
    std::thread thread_;
};

}  // namespace hpcai::meters
