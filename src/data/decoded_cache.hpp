// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include <hpcai/data/jpeg.hpp>

namespace hpcai::data {

/// Keeps decoded pictures until the budget is used up, and then those it has. Many threads.
class DecodedCache {
public:
    explicit DecodedCache(std::size_t budget_bytes) : budget_bytes_(budget_bytes) {}

    /// The picture kept under `sample`, else decode()'s. What decode() throws is passed on.
    template <typename Decode>
    std::shared_ptr<const DecodedImage> get(std::uint32_t sample, const Decode& decode) {
        {
            const std::lock_guard lock(mutex_);
            const auto found = kept_.find(sample);
            if (found != kept_.end()) return found->second;
        }
        auto decoded = std::make_shared<const DecodedImage>(decode());
        const std::size_t bytes = decoded->image.pixels.size();
        const std::lock_guard lock(mutex_);
        if (used_bytes_ + bytes <= budget_bytes_ && kept_.emplace(sample, decoded).second) {
            used_bytes_ += bytes;
        }
        return decoded;
    }

private:
    const std::size_t budget_bytes_;
    std::mutex mutex_;
    std::size_t used_bytes_ = 0;
    std::unordered_map<std::uint32_t, std::shared_ptr<const DecodedImage>> kept_;
};

}  // namespace hpcai::data
