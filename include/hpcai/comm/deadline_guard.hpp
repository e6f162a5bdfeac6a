// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <thread>

#include <hpcai/base/error.hpp>

namespace hpcai::comm {

/// Bounds an MPI call that has no time limit of its own. If the guard still exists after `seconds`,
/// it ends the process with `exit_code` and one line on stderr.
class DeadlineGuard {
public:
    DeadlineGuard(double seconds, ExitCode exit_code, std::string what);

private:
    std::jthread thread_;
};

}  // namespace hpcai::comm
