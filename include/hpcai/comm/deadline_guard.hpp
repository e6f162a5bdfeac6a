// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include <hpcai/base/error.hpp>

namespace hpcai::comm {

/// Bounds a call into MPI that has no time limit of its own: ends the process with `exit_code` and
/// one line on stderr when the guard still lives after `seconds`.
class DeadlineGuard {
public:
    DeadlineGuard(double seconds, ExitCode exit_code, std::string what);
    ~DeadlineGuard();
    DeadlineGuard(const DeadlineGuard&) = delete;
    DeadlineGuard& operator=(const DeadlineGuard&) = delete;

private:
    std::mutex mutex_;
    std::condition_variable wake_;
    bool done_ = false;
    std::thread thread_;
};

}  // namespace hpcai::comm
