// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

#include <hpcai/base/process.hpp>

namespace hpcai {
namespace {

struct Stat {
    char state = 'X';
    std::int64_t start_ticks = 0;
};

/// proc(5): the second field, a name in brackets, may contain anything.
std::optional<Stat> stat_of(std::int64_t number) {
    std::ifstream file(fmt::format("/proc/{}/stat", number));
    std::string line;
    if (!std::getline(file, line, '\0')) return std::nullopt;
    const std::size_t end_of_name = line.rfind(')');
    if (end_of_name == std::string::npos) return std::nullopt;
    std::istringstream fields(line.substr(end_of_name + 1));
    Stat stat;
    fields >> stat.state;
    std::string skipped;
    constexpr int kFieldsBetween = 18;  // from the fourth to the 21st
    for (int field = 0; field < kFieldsBetween; ++field) fields >> skipped;
    if (!(fields >> stat.start_ticks)) return std::nullopt;
    return stat;
}

}  // namespace

ProcessId this_process() {
    const std::int64_t number = getpid();
    const std::optional<Stat> stat = stat_of(number);
    return {number, stat ? stat->start_ticks : 0};
}

bool is_running(const ProcessId& process) {
    const std::optional<Stat> stat = stat_of(process.number);
    const bool has_ended = !stat || stat->state == 'Z' || stat->state == 'X';
    return !has_ended && stat->start_ticks == process.start_ticks;
}

}  // namespace hpcai
