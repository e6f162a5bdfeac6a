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

/// Caches samples until the budget is used up; nothing is evicted. Thread-safe. `bytes_of` returns
/// the size of a sample.
template <typename Made>
class SampleCache {
public:
    explicit SampleCache(std::size_t budget_bytes) : budget_bytes_(budget_bytes) {}

    /// Returns the cached sample or make(), whose exceptions are passed on.
    template <typename Make>
    std::shared_ptr<const Made> get(std::uint32_t sample, const Make& make) {
        {
            const std::lock_guard lock(mutex_);
            const auto found = kept_.find(sample);
            if (found != kept_.end()) return found->second;
        }
        auto made = std::make_shared<const Made>(make());
        const std::size_t bytes = bytes_of(*made);
        const std::lock_guard lock(mutex_);
        if (used_bytes_ + bytes <= budget_bytes_ && kept_.emplace(sample, made).second) {
            used_bytes_ += bytes;
        }
        return made;
    }

private:
    const std::size_t budget_bytes_;
    std::mutex mutex_;
    std::size_t used_bytes_ = 0;
    std::unordered_map<std::uint32_t, std::shared_ptr<const Made>> kept_;
};

}  // namespace hpcai::data
