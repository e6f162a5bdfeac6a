// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <string>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hpcai/base/process.hpp>

namespace hpcai {
namespace {

struct Stat {
    ProcessState state = ProcessState::unknown;
    std::int64_t start_ticks = 0;
};

/// Parses /proc/PID/stat, whose second field, a name in parentheses, may contain any character.
Stat parse(const std::string& line) {
    const std::size_t end_of_name = line.rfind(')');
    if (end_of_name == std::string::npos) return {};
    std::istringstream fields(line.substr(end_of_name + 1));
    char code = '?';
    fields >> code;
    std::string skipped;
    constexpr int kSkippedFields = 18;  // fields 4 to 21
    for (int field = 0; field < kSkippedFields; ++field) fields >> skipped;
    Stat stat;
    if (!(fields >> stat.start_ticks)) return {};
    const bool has_ended = code == 'Z' || code == 'X';
    const bool is_stopped = code == 'T';  // not 't', which a debugger causes
    stat.state = has_ended    ? ProcessState::ended
                 : is_stopped ? ProcessState::stopped
                              : ProcessState::running;
    return stat;
}

/// Reads /proc/PID/stat. The state is `ended` if there is no such process, and `unknown` if reading
/// fails, for example because the file table is full.
Stat proc_stat(std::int64_t pid) {
    const int file = open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return {errno == ENOENT || errno == ESRCH ? ProcessState::ended : ProcessState::unknown, 0};
    std::array<char, 4096> text{};
    const ssize_t size = read(file, text.data(), text.size());
    const int read_errno = errno;
    close(file);
    if (size < 0) return {read_errno == ESRCH ? ProcessState::ended : ProcessState::unknown, 0};
    return parse(std::string(text.data(), static_cast<std::size_t>(size)));
}

std::uint64_t own_pid_namespace() {
    struct stat file {};
    return stat("/proc/self/ns/pid", &file) == 0 ? file.st_ino : 0;
}

}  // namespace

ProcessId this_process() {
    const std::int64_t pid = getpid();
    return {pid, proc_stat(pid).start_ticks, own_pid_namespace()};
}

ProcessState state_of(const ProcessId& process) {
    if (process.pid_namespace == 0 || process.pid_namespace != own_pid_namespace())
        return ProcessState::unknown;
    const Stat stat = proc_stat(process.pid);
    const bool exists = stat.state == ProcessState::running || stat.state == ProcessState::stopped;
    const bool is_pid_reused = exists && stat.start_ticks != process.start_ticks;
    return is_pid_reused ? ProcessState::ended : stat.state;
}

std::optional<double> peak_resident_bytes() {
    std::ifstream status("/proc/self/status");
    for (std::string key; status >> key;) {
        double kibibytes = 0;
        if (key == "VmHWM:" && status >> kibibytes) return kibibytes * 1024;
        std::getline(status, key);
    }
    return std::nullopt;
}

std::int64_t host_memory_bytes(const std::filesystem::path& root) {
    std::int64_t bytes = std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
    std::ifstream groups(root / "proc/self/cgroup");
    // Lines are "4:memory:/a/b" or, in version 2, "0::/a/b".
    for (std::string line; std::getline(groups, line);) {
        const std::size_t first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string controller = line.substr(first + 1, second - first - 1);
        if (!controller.empty() && controller != "memory") continue;
        const char* limit = controller.empty() ? "memory.max" : "memory.limit_in_bytes";
        const auto tree = root / "sys/fs/cgroup" / controller;
        auto group = std::filesystem::path(line.substr(second + 1)).relative_path();
        for (bool is_last = false; !is_last; group = group.parent_path()) {
            is_last = group.empty();
            std::int64_t found = 0;
            if (std::ifstream(tree / group / limit) >> found) bytes = std::min(bytes, found);
        }
    }
    return bytes;
}

void reset_peak_resident_bytes() {
    std::ofstream("/proc/self/clear_refs") << "5";  // proc(5); a kernel may refuse
}

}  // namespace hpcai
