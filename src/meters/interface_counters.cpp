// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <sys/socket.h>

#include <hpcai/base/error.hpp>
#include <hpcai/meters/counter.hpp>

#include "sysfs_file.hpp"

namespace hpcai::meters {
namespace {

namespace fs = std::filesystem;

constexpr int kLoopback = 772;  // ARPHRD_LOOPBACK of <linux/if_arp.h>
constexpr int kInfiniband = 32;
constexpr double kBytesPerWord = 4;              // InfiniBand ports count words
constexpr std::uint64_t kMaxCount = 0xffffffff;  // where a 32-bit port counter stops

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
    for (const std::string& adapter : list_names(adapters)) {
        for (const std::string& port : list_names(adapters / adapter / "ports")) {
            for (const Direction& direction : kDirections) {
                const fs::path file =
                    adapters / adapter / "ports" / port / "counters" / direction.port_file;
                counters.push_back(
                    counter_of(fmt::format("ib:{}/{}:{}", adapter, port, direction.name), [file] {
                        const std::uint64_t words = read_unsigned(file);
                        require(words != kMaxCount, ExitCode::data,
                                "{}: the counter is at the maximum of 32 bits", file.string());
                        return kBytesPerWord * static_cast<double>(words);
                    }));
            }
        }
    }
    return counters;
}

int type_of(const fs::path& interface) {
    try {
        return static_cast<int>(read_unsigned(interface / "type"));
    } catch (const Error&) {
        return 0;
    }
}

bool has(const fs::path& interface, const char* name) {
    std::error_code error;
    return fs::exists(interface / name, error);
}

/// Returns false for bridges, bonds, VLANs, tunnels and their members, which count bytes twice.
bool is_independent(const fs::path& interface) {
    constexpr std::array kMarkers{"bridge", "bonding", "tun_flags", "master"};
    return std::ranges::none_of(kMarkers, [&](auto marker) { return has(interface, marker); }) &&
           std::ranges::none_of(list_names(interface), [](const std::string& name) {
               return name.starts_with("lower_") || name.starts_with("upper_");
           });
}

/// Returns interfaces that together count each byte once.
std::vector<std::string> counted_interfaces(const fs::path& interfaces, bool ports_are_counted) {
    std::vector<std::string> devices, others;
    for (const std::string& name : list_names(interfaces)) {
        const fs::path interface = interfaces / name;
        const int type = type_of(interface);
        if (type == kLoopback || (type == kInfiniband && ports_are_counted)) continue;
        if (has(interface, "device")) {
            devices.push_back(name);
        } else if (has(interface, "statistics") && is_independent(interface)) {
            others.push_back(name);
        }
    }
    return devices.empty() && !ports_are_counted ? others : devices;
}

/// Returns the address as the kernel writes it: "02:fc:00:00:00:01".
std::string text_of(const sockaddr_ll& address) {
    const auto bytes =
        std::span(address.sll_addr).first(std::min<std::size_t>(address.sll_halen, 6));
    return fmt::format("{:02x}", fmt::join(bytes, ":"));
}

bool has_address(const std::filesystem::path& interface, const sockaddr_ll& address) {
    try {
        return read_unsigned(interface / "ifindex") == static_cast<unsigned>(address.sll_ifindex) &&
               read_first_line(interface / "address").starts_with(text_of(address));
    } catch (const Error&) {
        return false;
    }
}

}  // namespace

std::vector<Counter> interface_counters(const fs::path& sysfs) {
    std::vector<Counter> counters = port_counters(sysfs / "class/infiniband");
    const fs::path interfaces = sysfs / "class/net";
    for (const std::string& name : counted_interfaces(interfaces, !counters.empty())) {
        for (const Direction& direction : kDirections) {
            const fs::path file = interfaces / name / direction.interface_file;
            counters.push_back(counter_of(fmt::format("net:{}:{}", name, direction.name), [file] {
                return static_cast<double>(read_unsigned(file));
            }));
        }
    }
    return counters;
}

bool shows_own_interfaces(const std::filesystem::path& sysfs) {
    ifaddrs* first = nullptr;
    if (getifaddrs(&first) != 0) return false;
    const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, &freeifaddrs);
    const std::filesystem::path shown = sysfs / "class/net";
    std::set<std::string> own;
    for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
        if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_PACKET) continue;
        sockaddr_ll address{};
        std::memcpy(&address, entry->ifa_addr, sizeof address);
        if (!has_address(shown / entry->ifa_name, address)) return false;
        own.insert(entry->ifa_name);
    }
    return std::ranges::all_of(list_names(shown), [&](const std::string& name) {
        return own.contains(name) ||
               list_names(shown / name).empty();  // a file of the kernel, not an interface
    });
}

}  // namespace hpcai::meters
