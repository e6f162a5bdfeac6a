// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include <hpcai/base/error.hpp>
#include <hpcai/meters/counter.hpp>

namespace hpcai::meters {

namespace fs = std::filesystem;

/// A folder that emulates the parts of /sys that a test creates.
class FakeSysfs {
public:
    FakeSysfs() {
        std::string name = (fs::temp_directory_path() / "hpcai500-sysfs-XXXXXX").string();
        root_ = mkdtemp(name.data());
        fs::permissions(root_, fs::perms::all);  // for a user to which a test switches
    }
    FakeSysfs(const FakeSysfs&) = delete;
    FakeSysfs& operator=(const FakeSysfs&) = delete;
    ~FakeSysfs() { fs::remove_all(root_); }

    const fs::path& root() const { return root_; }

    void put(const std::string& file, const std::string& line) const {
        fs::create_directories((root_ / file).parent_path());
        std::ofstream(root_ / file) << line << '\n';
    }

    /// Adds class/powercap/`zone` with its name, its reading and its range.
    void add_zone(const std::string& zone, const std::string& name, const std::string& microjoules,
                  const std::string& range = "262143328850") const {
        const std::string folder = "class/powercap/" + zone + "/";
        put(folder + "name", name);
        put(folder + "energy_uj", microjoules);
        put(folder + "max_energy_range_uj", range);
    }

    void add_interface(const std::string& name, int type, const std::string& sent,
                       const std::string& received) const {
        const std::string folder = "class/net/" + name + "/";
        put(folder + "type", std::to_string(type));
        put(folder + "statistics/tx_bytes", sent);
        put(folder + "statistics/rx_bytes", received);
    }

    void add_port(const std::string& port, const std::string& words) const {
        put("class/infiniband/" + port + "/counters/port_xmit_data", words);
        put("class/infiniband/" + port + "/counters/port_rcv_data", words);
    }

private:
    fs::path root_;
};

inline std::vector<std::string> names_of(const std::vector<Counter>& counters) {
    std::vector<std::string> names;
    for (const Counter& one : counters) names.push_back(one.name);
    return names;
}

/// Returns the message of the error that `read` throws.
template <typename Read>
std::string message_of(const Read& read) {
    try {
        read();
    } catch (const Error& error) {
        return error.what();
    }
    return "nothing was thrown";
}

}  // namespace hpcai::meters
