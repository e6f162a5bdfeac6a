// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>

#include <hpcai/comm/deadline_guard.hpp>

namespace hpcai::comm {

DeadlineGuard::DeadlineGuard(double seconds, ExitCode exit_code, std::string what)
    : thread_([seconds, exit_code, what = std::move(what)](const std::stop_token& stop) {
          std::mutex mutex;
          std::unique_lock lock(mutex);
          std::condition_variable_any wake;
          const std::chrono::duration<double> limit(seconds);
          wake.wait_for(lock, stop, limit, [&] { return stop.stop_requested(); });
          // wait_for() of libstdc++ may return false although the stop was requested.
          if (stop.stop_requested()) return;
          fmt::print(stderr, "hpcai500: {} did not return within {} s; the process ends\n", what,
                     seconds);
          std::fflush(nullptr);
          std::_Exit(static_cast<int>(exit_code));
      }) {}

}  // namespace hpcai::comm
