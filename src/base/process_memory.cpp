// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <string>

#include <hpcai/base/process_memory.hpp>

namespace hpcai {

std::optional<double> peak_resident_bytes() {
    std::ifstream status("/proc/self/status");
    for (std::string key; status >> key;) {
        double kibibytes = 0;
        if (key == "VmHWM:" && status >> kibibytes) return kibibytes * 1024;
        std::getline(status, key);
    }
    return std::nullopt;
}

void forget_peak_resident_bytes() {
    std::ofstream("/proc/self/clear_refs") << "5";  // proc(5); a kernel may refuse
}

}  // namespace hpcai
