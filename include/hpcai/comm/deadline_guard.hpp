// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <thread>

#include <hpcai/base/error.hpp>

namespace hpcai::comm {

/// A time limit for a call that has none. If the guard still exists after `seconds`, it ends the
/// process with `exit_code` and prints one line on stderr, which names `what`.
class DeadlineGuard {
public:
    DeadlineGuard(double seconds, ExitCode exit_code, std::string what);

private:
    std::jthread thread_;
};

}  // namespace hpcai::comm
