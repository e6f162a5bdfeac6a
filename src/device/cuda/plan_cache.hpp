// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace hpcai::device::cuda {

/// The fastest known plan of each problem, for one device and version of cuDNN, kept in a JSON file
/// between runs. Throws nothing: a failure to read or write the file is a warning.
class PlanCache {
public:
    /// Plans are valid on one kind of machine only, so a file of another machine is not used.
    struct Machine {
        std::string device;  // "NVIDIA H200"
        std::string cudnn;   // "9.19.0"
        bool operator==(const Machine&) const = default;
    };

    /// Reads `file` if it exists and is of this machine. With an empty path plans are kept in
    /// memory only.
    PlanCache(std::filesystem::path file, Machine machine);

    /// The name of the plan, or "" for an unknown problem.
    std::string find(const std::string& problem) const;
    void insert(const std::string& problem, const std::string& plan);
    /// Atomically rewrites the file if there are new plans, and merges those that other processes
    /// have added.
    void save();
    /// Why the file was not read or written, for people; "" if there was no problem.
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
