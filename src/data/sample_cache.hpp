// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <hpcai/data/jpeg.hpp>

namespace hpcai::data {

inline std::size_t bytes_of(const std::vector<std::byte>& fields) {
    return fields.size();
}
inline std::size_t bytes_of(const DecodedImage& decoded) {
    return decoded.image.pixels.size();
}

/// Caches samples until their bytes_of() reach the budget. Never evicts a sample. Thread-safe.
template <typename Value>
class SampleCache {
public:
    explicit SampleCache(std::size_t budget_bytes) : budget_bytes_(budget_bytes) {}

    /// Returns the cached sample, or make() if there is none. Propagates exceptions of make().
    template <typename Make>
    std::shared_ptr<const Value> get(std::uint32_t sample, const Make& make) {
        {
            const std::lock_guard lock(mutex_);
            const auto found = entries_.find(sample);
            if (found != entries_.end()) return found->second;
        }
        auto value = std::make_shared<const Value>(make());
        const std::size_t bytes = bytes_of(*value);
        const std::lock_guard lock(mutex_);
        if (used_bytes_ + bytes <= budget_bytes_ && entries_.emplace(sample, value).second) {
            used_bytes_ += bytes;
        }
        return value;
    }

private:
    const std::size_t budget_bytes_;
    std::mutex mutex_;
    std::size_t used_bytes_ = 0;
    std::unordered_map<std::uint32_t, std::shared_ptr<const Value>> entries_;
};

}  // namespace hpcai::data
