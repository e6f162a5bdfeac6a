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

/// Samples met so far that could not be read soundly.
struct BadSampleReport {
    std::int64_t count = 0;        // distinct samples
    std::vector<BadSample> first;  // the first kNamedBadSamples of them in index order
};

inline constexpr std::size_t kNamedBadSamples = 20;

/// Collects bad samples from many threads; the report does not depend on who came first.
class BadSamples {
public:
    void record(std::uint32_t sample, const std::string& name, const std::string& reason);
    BadSampleReport report() const;
    /// Returns the numbers of all bad samples, ascending.
    std::vector<std::uint32_t> numbers() const;
    /// Counts samples that were recorded by another object, whose names are not known.
    void remember(std::span<const std::uint32_t> samples);

private:
    mutable std::mutex mutex_;
    std::unordered_set<std::uint32_t> seen_;
    std::map<std::uint32_t, BadSample> first_;
};

}  // namespace hpcai::data
