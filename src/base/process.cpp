// SPDX-License-Identifier: Apache-2.0
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

enum class Life { unknown, running, stopped, ended };

struct Stat {
    Life life = Life::unknown;
    std::int64_t start_ticks = 0;
};

/// proc(5): the second field, a name in brackets, may contain anything.
Stat parse(const std::string& line) {
    const std::size_t end_of_name = line.rfind(')');
    if (end_of_name == std::string::npos) return {};
    std::istringstream fields(line.substr(end_of_name + 1));
    char state = '?';
    fields >> state;
    std::string skipped;
    constexpr int kFieldsBetween = 18;  // fields 4 to 21
    for (int field = 0; field < kFieldsBetween; ++field) fields >> skipped;
    Stat stat;
    if (!(fields >> stat.start_ticks)) return {};
    const bool has_ended = state == 'Z' || state == 'X';
    const bool is_stopped = state == 'T';  // not 't', which a debugger causes
    stat.life = has_ended ? Life::ended : is_stopped ? Life::stopped : Life::running;
    return stat;
}

/// If the file table is full, the state of the process is unknown.
Stat proc_stat(std::int64_t number) {
    const int file = open(fmt::format("/proc/{}/stat", number).c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return {errno == ENOENT || errno == ESRCH ? Life::ended : Life::unknown, 0};
    std::array<char, 4096> text{};
    const ssize_t size = read(file, text.data(), text.size());
    const int why = errno;
    close(file);
    if (size < 0) return {why == ESRCH ? Life::ended : Life::unknown, 0};
    return parse(std::string(text.data(), static_cast<std::size_t>(size)));
}

std::uint64_t space_of_this_process() {
    struct stat space {};
    return stat("/proc/self/ns/pid", &space) == 0 ? space.st_ino : 0;
}

Life life_of(const ProcessId& process) {
    if (process.space == 0 || process.space != space_of_this_process()) return Life::unknown;
    const Stat stat = proc_stat(process.number);
    const bool is_another = stat.life != Life::unknown && stat.life != Life::ended &&
                            stat.start_ticks != process.start_ticks;
    return is_another ? Life::ended : stat.life;
}

}  // namespace

ProcessId this_process() {
    const std::int64_t number = getpid();
    return {number, proc_stat(number).start_ticks, space_of_this_process()};
}

bool is_running(const ProcessId& process) {
    const Life life = life_of(process);
    return life == Life::running || life == Life::stopped;
}

bool has_ended(const ProcessId& process) {
    return life_of(process) == Life::ended;
}

bool is_stopped(const ProcessId& process) {
    return life_of(process) == Life::stopped;
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

void reset_peak_resident_bytes() {
    std::ofstream("/proc/self/clear_refs") << "5";  // proc(5); a kernel may refuse
}

}  // namespace hpcai
