// SPDX-License-Identifier: Apache-2.0
#include "trial.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hpcai/base/error.hpp>

namespace hpcai::data::climate {
namespace {

/// Prepares for a crash: disables MPI's handlers, core files and output.
void become_expendable(unsigned seconds) {
    constexpr std::array kSignals{SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL, SIGALRM};
    for (const int number : kSignals) std::signal(number, SIG_DFL);
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0) {
        ::dup2(nowhere, STDOUT_FILENO);
        ::dup2(nowhere, STDERR_FILENO);
    }
    ::alarm(seconds);
}

[[noreturn]] void run_and_exit(const std::function<void()>& action, int out) {
    try {
        action();
    } catch (const std::exception&) {  // the caller gets the same error
    }
    const char word = 1;
    const bool is_written = ::write(out, &word, 1) == 1;
    ::_exit(is_written ? 0 : 1);
}

/// Returns whether a byte arrives before the other end is closed.
bool receives_byte(int in) {
    char word = 0;
    return TEMP_FAILURE_RETRY(::read(in, &word, 1)) == 1;
}

/// Returns whether the child's alarm ended it; false if its exit status is not available.
bool was_alarmed(pid_t child) {
    int status = 0;
    return TEMP_FAILURE_RETRY(::waitpid(child, &status, 0)) == child && WIFSIGNALED(status) &&
           WTERMSIG(status) == SIGALRM;
}

/// Throws Error(internal), because the system failed, not the file.
[[noreturn]] void fail_to_start(int error) {
    throw Error(ExitCode::internal,
                fmt::format("cannot start a process that tries a file: {}", std::strerror(error)));
}

}  // namespace

TrialResult try_apart(const std::function<void()>& action, unsigned seconds) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail_to_start(errno);
    const pid_t child = ::fork();
    if (child == 0) {
        ::close(ends[0]);
        become_expendable(seconds);
        run_and_exit(action, ends[1]);
    }
    const int error = errno;
    ::close(ends[1]);
    const bool is_well = child > 0 && receives_byte(ends[0]);
    ::close(ends[0]);
    if (child < 0) fail_to_start(error);
    const bool is_slow = was_alarmed(child);
    if (is_well) return TrialResult::survived;
    return is_slow ? TrialResult::too_slow : TrialResult::crashed;
}

}  // namespace hpcai::data::climate
