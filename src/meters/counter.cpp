// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <sys/socket.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/meters/counter.hpp>

#include "nvml.hpp"

namespace hpcai::meters {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& file, int error) {
    throw Error(ExitCode::data, fmt::format("{}: {}{}", printable(file.string()),
                                            std::generic_category().message(error),
                                            error == EACCES ? " (EACCES)" : ""));
}

/// Reads the first line of `file`. Throws Error(data) naming the file and, if denied, EACCES.
std::string read_first_line(const fs::path& file) {
    struct Close {
        void operator()(std::FILE* open) const { std::fclose(open); }
    };
    const std::unique_ptr<std::FILE, Close> open(std::fopen(file.c_str(), "re"));
    if (!open) fail(file, errno);
    std::array<char, 256> buffer{};
    errno = 0;
    if (std::fgets(buffer.data(), buffer.size(), open.get()) == nullptr && errno != 0) {
        fail(file, errno);
    }
    std::string line = buffer.data();
    line.erase(std::min(line.find('\n'), line.size()));
    return line;
}

/// Reads the first line as an unsigned integer. Throws Error(data) naming the file.
std::uint64_t read_unsigned(const fs::path& file) {
    const std::string line = read_first_line(file);
    const auto value = parse_number<std::uint64_t>(line);
    require(value.has_value(), ExitCode::data, "{}: expected a whole number, found \"{}\"",
            printable(file.string()), printable(line));
    return *value;
}

/// Returns the sorted names in `folder`; an empty list if it cannot be read.
std::vector<std::string> list_names(const fs::path& folder) {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
        names.push_back(at->path().filename().string());
    }
    std::ranges::sort(names);
    return names;
}

/// Makes a counter that is read by the function that `open` returns. `open` may change the name. If
/// it throws Error, the counter has that failure.
template <typename Open>
Counter make_counter(std::string name, const char* unit, const Open& open) {
    Counter counter{std::move(name), unit, ""};
    try {
        counter.read = open(counter.name);
    } catch (const Error& error) {
        counter.failure = error.what();
    }
    return counter;
}

/// Makes a counter of bytes. If the first read() throws Error, the counter has that failure.
Counter byte_counter(std::string name, const std::function<double()>& read) {
    return make_counter(std::move(name), "B", [&](std::string&) {
        read();
        return read;
    });
}

constexpr std::string_view kZonePrefix = "intel-rapl:";

/// The energy of a zone, whose microjoule counter wraps at the end of its range.
class WrappedEnergy {
public:
    explicit WrappedEnergy(const fs::path& zone)
        : file_(zone / "energy_uj"),
          range_(read_unsigned(zone / "max_energy_range_uj")),
          last_(read_unsigned(file_)) {}
    double joules() {
        const std::uint64_t microjoules = read_unsigned(file_);
        if (microjoules < last_) wrapped_ += static_cast<double>(range_);
        last_ = microjoules;
        return (wrapped_ + static_cast<double>(microjoules)) * 1e-6;
    }

private:
    fs::path file_;
    std::uint64_t range_, last_;  // in microjoules, like wrapped_
    double wrapped_ = 0;
};

/// Returns "package-0" for the zone of a package and "package-0:dram" for its memory, else "".
/// Other zones are inside a package or contain packages.
std::string domain_of(const fs::path& zones, const std::string& zone) {
    try {
        const auto depth = std::ranges::count(zone, ':');
        const std::string name = read_first_line(zones / zone / "name");
        if (depth == 1) return name.starts_with("package-") ? name : "";
        if (depth != 2 || name != "dram") return "";
        const std::string package = domain_of(zones, zone.substr(0, zone.rfind(':')));
        return package.empty() ? "" : package + ":dram";
    } catch (const Error&) {
        return "";
    }
}

constexpr int kLoopback = 772;                   // ARPHRD_LOOPBACK of <linux/if_arp.h>
constexpr int kInfiniband = 32;                  // ARPHRD_INFINIBAND
constexpr double kBytesPerWord = 4;              // InfiniBand ports count words
constexpr std::uint64_t kMaxCount = 0xffffffff;  // a 32-bit port counter stops here

struct Direction {
    std::string_view name;
    const char* interface_file;  // in the folder of a network interface
    const char* port_file;       // in the folder "counters" of an InfiniBand port
};
constexpr std::array kDirections{Direction{"sent", "statistics/tx_bytes", "port_xmit_data"},
                                 Direction{"received", "statistics/rx_bytes", "port_rcv_data"}};

std::vector<Counter> port_counters(const fs::path& adapters) {
    std::vector<Counter> counters;
    for (const std::string& adapter : list_names(adapters)) {
        for (const std::string& port : list_names(adapters / adapter / "ports")) {
            for (const Direction& direction : kDirections) {
                const fs::path file =
                    adapters / adapter / "ports" / port / "counters" / direction.port_file;
                counters.push_back(
                    byte_counter(fmt::format("ib:{}/{}:{}", adapter, port, direction.name), [file] {
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

/// Returns the first six bytes of the address as the kernel writes them: "02:fc:00:00:00:01".
std::string text_of(const sockaddr_ll& address) {
    const auto bytes =
        std::span(address.sll_addr).first(std::min<std::size_t>(address.sll_halen, 6));
    return fmt::format("{:02x}", fmt::join(bytes, ":"));
}

bool has_address(const fs::path& interface, const sockaddr_ll& address) {
    try {
        return read_unsigned(interface / "ifindex") == static_cast<unsigned>(address.sll_ifindex) &&
               read_first_line(interface / "address").starts_with(text_of(address));
    } catch (const Error&) {
        return false;
    }
}

class IntegratedPower {
public:
    IntegratedPower(std::function<double()> watts, std::function<double()> seconds)
        : watts_(std::move(watts)),
          seconds_(std::move(seconds)),
          last_watts_(watts_()),
          last_seconds_(seconds_()) {}
    double joules() {
        const double watts = watts_();
        const double seconds = seconds_();
        joules_ += (watts + last_watts_) / 2 * (seconds - last_seconds_);
        last_watts_ = watts;
        last_seconds_ = seconds;
        return joules_;
    }

private:
    std::function<double()> watts_, seconds_;
    double last_watts_, last_seconds_;
    double joules_ = 0;
};

Counter gpu_counter(const std::shared_ptr<const Nvml>& nvml, const NvmlSource& source,
                    const std::string& uuid) {
    const auto open = [&](std::string& name) -> std::function<double()> {
        const NvmlDevice device = nvml->device(uuid);
        if (nvml->joules(device)) {
            return [nvml, device] {
                const auto joules = nvml->joules(device);
                require(joules.has_value(), ExitCode::data, "NVML: the energy counter is gone");
                return *joules;
            };
        }
        name = "nvml-power:" + uuid;
        const auto power = std::make_shared<IntegratedPower>(
            [nvml, device] { return nvml->watts(device); }, source.seconds);
        return [power] { return power->joules(); };
    };
    return make_counter("nvml:" + uuid, "J", open);
}

}  // namespace

std::vector<Counter> processor_counters(const fs::path& sysfs) {
    const fs::path zones = sysfs / "class/powercap";
    std::vector<Counter> counters;
    for (const std::string& zone : list_names(zones)) {
        if (!zone.starts_with(kZonePrefix)) continue;
        const std::string domain = domain_of(zones, zone);
        if (domain.empty()) continue;
        counters.push_back(make_counter("rapl:" + domain, "J", [&](std::string&) {
            const auto energy = std::make_shared<WrappedEnergy>(zones / zone);
            return [energy] { return energy->joules(); };
        }));
    }
    if (counters.empty()) {
        counters.push_back(
            {"rapl", "J",
             fmt::format("{} shows no energy of a processor package", printable(zones.string()))});
    }
    return counters;
}

std::vector<Counter> interface_counters(const fs::path& sysfs) {
    std::vector<Counter> counters = port_counters(sysfs / "class/infiniband");
    const fs::path interfaces = sysfs / "class/net";
    for (const std::string& name : counted_interfaces(interfaces, !counters.empty())) {
        for (const Direction& direction : kDirections) {
            const fs::path file = interfaces / name / direction.interface_file;
            counters.push_back(byte_counter(fmt::format("net:{}:{}", name, direction.name), [file] {
                return static_cast<double>(read_unsigned(file));
            }));
        }
    }
    return counters;
}

bool shows_own_interfaces(const fs::path& sysfs) {
    ifaddrs* first = nullptr;
    if (getifaddrs(&first) != 0) return false;
    const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, &freeifaddrs);
    const fs::path shown = sysfs / "class/net";
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
               list_names(shown / name).empty();  // a control file such as bonding_masters
    });
}

std::vector<Counter> gpu_counters(const NvmlSource& source, std::span<const std::string> uuids) {
    std::vector<Counter> counters;
    if (uuids.empty()) return counters;
    try {
        const auto nvml = std::make_shared<const Nvml>(source.library);
        for (const std::string& uuid : uuids) {
            counters.push_back(gpu_counter(nvml, source, uuid));
        }
    } catch (const Error& error) {
        counters.push_back({"nvml", "J", error.what()});
    }
    return counters;
}

}  // namespace hpcai::meters
