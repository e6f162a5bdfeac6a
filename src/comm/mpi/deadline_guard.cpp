// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <fmt/core.h>

#include <hpcai/comm/deadline_guard.hpp>

namespace hpcai::comm {

DeadlineGuard::DeadlineGuard(double seconds, ExitCode exit_code, std::string what)
    : thread_([this, seconds, exit_code, what = std::move(what)] {
          std::unique_lock lock(mutex_);
          if (wake_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return done_; })) {
              return;
          }
          fmt::print(stderr, "hpcai500: {} did not return within {} s; the process ends\n", what,
                     seconds);
          std::fflush(nullptr);
          std::_Exit(static_cast<int>(exit_code));
      }) {}

DeadlineGuard::~DeadlineGuard() {
    {
        const std::lock_guard lock(mutex_);
        done_ = true;
    }
    wake_.notify_one();
    thread_.join();
}

}  // namespace hpcai::comm
