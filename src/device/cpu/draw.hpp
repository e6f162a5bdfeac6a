// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include <hpcai/ops/boxes.hpp>

namespace hpcai::device::cpu {

/// Samples the candidates of an image that have the smallest sampling keys.
class Sampler {
public:
    /// `keys` has room for `capacity` keys.
    Sampler(std::uint64_t* keys, std::int64_t capacity, std::uint32_t image_key,
            std::uint32_t stage)
        : keys_(keys), capacity_(capacity), image_key_(image_key), stage_(stage) {}

    void add(std::int64_t candidate) {
        const auto number = static_cast<std::uint32_t>(candidate);
        const std::uint64_t key =
            std::uint64_t{ops::sampling_key(image_key_, stage_, number)} << 32 | number;
        if (count_ == capacity_) {
            if (count_ == 0 || key > keys_[0]) return;
            std::pop_heap(keys_, keys_ + count_--);
        }
        keys_[count_++] = key;
        std::push_heap(keys_, keys_ + count_);
    }

    /// Keeps up to `limit` candidates, those with the smallest keys, in ascending order of their
    /// numbers. Returns how many it kept.
    std::int64_t finish(std::int64_t limit) {
        std::sort_heap(keys_, keys_ + count_);
        count_ = std::min(count_, limit);
        for (std::int64_t i = 0; i < count_; ++i) keys_[i] &= 0xffffffffu;
        std::sort(keys_, keys_ + count_);
        return count_;
    }
    /// Requires finish().
    std::int64_t candidate(std::int64_t index) const {
        return static_cast<std::int64_t>(keys_[index]);
    }

private:
    std::uint64_t* keys_;
    std::int64_t capacity_;
    std::int64_t count_ = 0;
    std::uint32_t image_key_, stage_;
};

}  // namespace hpcai::device::cpu
