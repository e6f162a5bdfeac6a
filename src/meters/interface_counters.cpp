// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <hpcai/base/error.hpp>
#include <hpcai/meters/counter.hpp>

#include "sysfs_file.hpp"

namespace hpcai::meters {
namespace {

namespace fs = std::filesystem;

constexpr int kLoopback = 772;  // ARPHRD_LOOPBACK of <linux/if_arp.h>
constexpr int kInfiniband = 32;
constexpr double kBytesOfWord = 4;           // in which InfiniBand's ports count
constexpr std::uint64_t kFull = 0xffffffff;  // where ports with 32 bits stop

struct Direction {
    std::string_view name;
    const char* interface_file;
    const char* port_file;
};
constexpr std::array kDirections{Direction{"sent", "statistics/tx_bytes", "port_xmit_data"},
                                 Direction{"received", "statistics/rx_bytes", "port_rcv_data"}};

Counter counter_of(std::string name, std::function<double()> read) {
    Counter counter{std::move(name), "B", ""};
    try {
        read();
        counter.read = std::move(read);
    } catch (const Error& error) {
        counter.failure = error.what();
    }
    return counter;
}

std::vector<Counter> port_counters(const fs::path& adapters) {
    std::vector<Counter> counters;
    for (const std::string& adapter : names_in(adapters)) {
        for (const std::string& port : names_in(adapters / adapter / "ports")) {
            for (const Direction& direction : kDirections) {
                const fs::path file =
                    adapters / adapter / "ports" / port / "counters" / direction.port_file;
                counters.push_back(
                    counter_of(fmt::format("ib:{}/{}:{}", adapter, port, direction.name), [file] {
                        const std::uint64_t words = whole_number(file);
                        require(words != kFull, ExitCode::data,
                                "{}: is full, at the most that 32 bits hold", file.string());
                        return kBytesOfWord * static_cast<double>(words);
                    }));
            }
        }
    }
    return counters;
}

int type_of(const fs::path& interface) {
    try {
        return static_cast<int>(whole_number(interface / "type"));
    } catch (const Error&) {
        return 0;
    }
}

bool has(const fs::path& interface, const char* name) {
    std::error_code error;
    return fs::exists(interface / name, error);
}

/// Bridges, bonds, VLANs and tunnels carry what others carry again, and so do members of a bridge.
bool stands_alone(const fs::path& interface) {
    constexpr std::array kSigns{"bridge", "bonding", "tun_flags", "master"};
    return std::ranges::none_of(kSigns, [&](auto sign) { return has(interface, sign); }) &&
           std::ranges::none_of(names_in(interface), [](const std::string& name) {
               return name.starts_with("lower_") || name.starts_with("upper_");
           });
}

/// Returns the interfaces that together carry each byte once.
std::vector<std::string> counted_interfaces(const fs::path& interfaces, bool ports_are_counted) {
    std::vector<std::string> devices, others;
    for (const std::string& name : names_in(interfaces)) {
        const fs::path interface = interfaces / name;
        const int type = type_of(interface);
        if (type == kLoopback || (type == kInfiniband && ports_are_counted)) continue;
        if (has(interface, "device")) {
            devices.push_back(name);
        } else if (has(interface, "statistics") && stands_alone(interface)) {
            others.push_back(name);
        }
    }
    return devices.empty() && !ports_are_counted ? others : devices;
}

}  // namespace

std::vector<Counter> interface_counters(const fs::path& sysfs) {
    std::vector<Counter> counters = port_counters(sysfs / "class/infiniband");
    const fs::path interfaces = sysfs / "class/net";
    for (const std::string& name : counted_interfaces(interfaces, !counters.empty())) {
        for (const Direction& direction : kDirections) {
            const fs::path file = interfaces / name / direction.interface_file;
            counters.push_back(counter_of(fmt::format("net:{}:{}", name, direction.name), [file] {
                return static_cast<double>(whole_number(file));
            }));
        }
    }
    return counters;
}

}  // namespace hpcai::meters
