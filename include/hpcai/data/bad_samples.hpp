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

/// Samples so far that were damaged or could not be read.
struct BadSampleReport {
    std::int64_t count = 0;        // distinct samples
    std::vector<BadSample> first;  // by index; at most kNamedBadSamples that record() named
};

inline constexpr std::size_t kNamedBadSamples = 20;

/// Collects bad samples from many threads; the report does not depend on the order of their calls.
class BadSamples {
public:
    void record(std::uint32_t sample, const std::string& name, const std::string& reason);
    BadSampleReport report() const;
    /// Returns the numbers of all bad samples, in ascending order.
    std::vector<std::uint32_t> numbers() const;
    /// Adds samples that another object recorded, without their names.
    void remember(std::span<const std::uint32_t> samples);

private:
    mutable std::mutex mutex_;
    std::unordered_set<std::uint32_t> seen_;
    std::map<std::uint32_t, BadSample> first_;
};

}  // namespace hpcai::data
