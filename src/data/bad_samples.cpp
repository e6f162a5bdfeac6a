// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include <hpcai/data/bad_samples.hpp>

namespace hpcai::data {

void BadSamples::record(std::uint32_t sample, const std::string& name, const std::string& reason) {
    const std::lock_guard lock(mutex_);
    seen_.insert(sample);
    first_.emplace(sample, BadSample{name, reason});
    if (first_.size() > kMaxNamedBadSamples) first_.erase(std::prev(first_.end()));
}

std::vector<std::uint32_t> BadSamples::numbers() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::uint32_t> numbers(seen_.begin(), seen_.end());
    std::ranges::sort(numbers);
    return numbers;
}

void BadSamples::restore(std::span<const std::uint32_t> samples) {
    const std::lock_guard lock(mutex_);
    seen_.insert(samples.begin(), samples.end());
}

BadSampleReport BadSamples::report() const {
    const std::lock_guard lock(mutex_);
    BadSampleReport report;
    report.count = static_cast<std::int64_t>(seen_.size());
    for (const auto& [sample, bad] : first_) report.first.push_back(bad);
    return report;
}

}  // namespace hpcai::data
