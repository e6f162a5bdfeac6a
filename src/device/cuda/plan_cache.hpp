// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace hpcai::device::cuda {

/// For one GPU model and version of cuDNN: the fastest known plan of each problem, the times of
/// tried plans, and the barred plans, which made the GPU unusable and must not run. A JSON file
/// keeps them between runs. A problem is one of these:
/// - a pass of a convolution (plan_key())
/// - a matrix product, whose "plan" is the index of the algorithm in the list of cuBLASLt
/// - a fused operation (Acceptance), whose "plan" is "joined" (used) or "apart" (not used)
/// A failure to read or write the file is not thrown but reported by warning().
class PlanCache {
public:
    /// A file that was written for another GPU model or version of cuDNN is not used.
    struct Machine {
        std::string device;  // "NVIDIA H200"
        std::string cudnn;   // "9.19.0"
        bool operator==(const Machine&) const = default;
    };

    /// The time and result of a plan that was tried, for display only.
    struct Timing {
        std::string name;
        double seconds = 0;
        std::size_t workspace_bytes = 0;
        std::optional<bool> agrees;  // with the most frequent result; none: not compared
    };

    /// Reads `file` if it exists and is for this machine. With an empty path, plans are kept in
    /// memory only.
    PlanCache(std::filesystem::path file, Machine machine);

    /// The name of the fastest plan; "" for an unknown problem, or if the plan is barred.
    std::string find(const std::string& problem) const;
    void insert(const std::string& problem, const std::string& plan);
    void insert_timings(const std::string& problem, std::vector<Timing> timings);
    const std::set<std::string>& barred(const std::string& problem) const;
    void bar(const std::string& problem, const std::string& plan);
    /// If there are new entries, merges them with entries that other processes have added to the
    /// file and replaces the file atomically.
    void save();
    /// Why the file was not read or written, for display; "" if there was no problem.
    const std::string& warning() const { return warning_; }

private:
    struct Contents {
        std::map<std::string, std::string> plans;
        std::map<std::string, std::set<std::string>> barred;
        std::map<std::string, std::vector<Timing>> timings;
    };
    Contents read();

    std::filesystem::path file_;
    Machine machine_;
    Contents known_;
    bool changed_ = false;
    std::string warning_;
};

}  // namespace hpcai::device::cuda
