// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <memory>

#include <hpcai/base/error.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/meters/counter.hpp>

#include "sysfs_file.hpp"

namespace hpcai::meters {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kZonePrefix = "intel-rapl:";

/// The energy of a zone, whose microjoule counter wraps at the end of its range.
class WrappedEnergy {
public:
    explicit WrappedEnergy(fs::path zone)
        : file_(zone / "energy_uj"), range_(read_unsigned(zone / "max_energy_range_uj")) {
        last_ = read_unsigned(file_);
    }
    double joules() {
        const std::uint64_t microjoules = read_unsigned(file_);
        if (microjoules < last_) wrapped_ += static_cast<double>(range_);
        last_ = microjoules;
        return (wrapped_ + static_cast<double>(microjoules)) * 1e-6;
    }

private:
    fs::path file_;
    std::uint64_t range_;
    std::uint64_t last_ = 0;
    double wrapped_ = 0;
};

Counter counter_of(const fs::path& zone, std::string name) {
    Counter counter{std::move(name), "J", ""};
    try {
        const auto energy = std::make_shared<WrappedEnergy>(zone);
        counter.read = [energy] { return energy->joules(); };
    } catch (const Error& error) {
        counter.failure = error.what();
    }
    return counter;
}

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

}  // namespace

std::vector<Counter> processor_counters(const fs::path& sysfs) {
    const fs::path zones = sysfs / "class/powercap";
    std::vector<Counter> counters;
    for (const std::string& zone : list_names(zones)) {
        if (!zone.starts_with(kZonePrefix)) continue;
        const std::string domain = domain_of(zones, zone);
        if (!domain.empty()) counters.push_back(counter_of(zones / zone, "rapl:" + domain));
    }
    if (counters.empty()) {
        counters.push_back(
            {"rapl", "J",
             fmt::format("{} shows no energy of a processor package", printable(zones.string()))});
    }
    return counters;
}

}  // namespace hpcai::meters
