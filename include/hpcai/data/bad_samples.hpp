// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

namespace hpcai::data {

struct BadSample {
    std::string name;
    std::string reason;
    bool operator==(const BadSample&) const = default;
};

/// The samples that were damaged or unreadable so far.
struct BadSampleReport {
    std::int64_t count = 0;        // distinct samples
    std::vector<BadSample> first;  // up to kMaxNamedBadSamples, in order of sample numbers
};

inline constexpr std::size_t kMaxNamedBadSamples = 20;

/// Thread-safe list of bad samples. The report does not depend on the order of calls.
class BadSamples {
public:
    void record(std::uint32_t sample, const std::string& name, const std::string& reason);
    BadSampleReport report() const;
    /// Returns the numbers of all bad samples, in ascending order.
    std::vector<std::uint32_t> numbers() const;
    /// Adds the numbers() of the run that is resumed. report() counts them, but does not name them.
    void restore(std::span<const std::uint32_t> samples);

private:
    mutable std::mutex mutex_;
    std::unordered_set<std::uint32_t> seen_;
    std::map<std::uint32_t, BadSample> first_;
};

}  // namespace hpcai::data
