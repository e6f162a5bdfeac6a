// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace hpcai::device::cuda {

/// Which plan was fastest for which problem, on one device with one version of cuDNN; kept in a
/// JSON file from run to run. Throws nothing: what cannot be read or written is a warning.
class PlanCache {
public:
    /// Plans mean nothing elsewhere, so a file of another machine counts as empty.
    struct Machine {
        std::string device;  // "NVIDIA H200"
        std::string cudnn;   // "9.19.0"
        bool operator==(const Machine&) const = default;
    };

    /// Reads `file` if it exists and is of this machine. An empty path keeps plans in memory only.
    PlanCache(std::filesystem::path file, Machine machine);

    /// The plan's name, or "" for a problem that is not known.
    std::string find(const std::string& problem) const;
    void insert(const std::string& problem, const std::string& plan);
    /// Writes the file anew if there is something new, whole or not at all, with what others have
    /// added to it in the meantime.
    void save();
    /// Why the file was not read or not written, for people; "" when all went well.
    const std::string& warning() const { return warning_; }

private:
    using Plans = std::map<std::string, std::string>;
    Plans read();

    std::filesystem::path file_;
    Machine machine_;
    Plans plans_;
    bool changed_ = false;
    std::string warning_;
};

}  // namespace hpcai::device::cuda
