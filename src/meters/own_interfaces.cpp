// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <string>

#include <fmt/core.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <sys/socket.h>

#include <hpcai/base/error.hpp>
#include <hpcai/meters/counter.hpp>

#include "sysfs_file.hpp"

namespace hpcai::meters {
namespace {

/// Returns the address as the kernel writes it: "02:fc:00:00:00:01".
std::string text_of(const sockaddr_ll& address) {
    std::string text;
    for (std::size_t index = 0; index < std::min<std::size_t>(address.sll_halen, 6); ++index) {
        text += fmt::format("{}{:02x}", index == 0 ? "" : ":", address.sll_addr[index]);
    }
    return text;
}

bool is_shown(const std::filesystem::path& interface, const sockaddr_ll& address) {
    try {
        return whole_number(interface / "ifindex") == static_cast<unsigned>(address.sll_ifindex) &&
               first_line(interface / "address").starts_with(text_of(address));
    } catch (const Error&) {
        return false;
    }
}

}  // namespace

bool shows_own_interfaces(const std::filesystem::path& sysfs) {
    ifaddrs* first = nullptr;
    if (getifaddrs(&first) != 0) return false;
    const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, &freeifaddrs);
    const std::filesystem::path shown = sysfs / "class/net";
    std::set<std::string> own;
    for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
        if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_PACKET) continue;
        sockaddr_ll address{};
        std::memcpy(&address, one->ifa_addr, sizeof address);
        if (!is_shown(shown / one->ifa_name, address)) return false;
        own.insert(one->ifa_name);
    }
    return std::ranges::all_of(names_in(shown), [&](const std::string& name) {
        return own.contains(name) || names_in(shown / name).empty();  // the kernel's own files
    });
}

}  // namespace hpcai::meters
