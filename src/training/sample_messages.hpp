// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include <hpcai/device/shard_exchange.hpp>

namespace hpcai::training {

/// A step's samples, from the first part of a replica to the others.
class SampleMessages final : public device::PartMessages {
public:
    SampleMessages(int part, std::span<std::byte> samples) : part_(part), samples_(samples) {}

    std::size_t bytes_to(int) const override { return part_ == 0 ? samples_.size() : 0; }
    std::size_t bytes_from(int part) const override { return part == 0 ? samples_.size() : 0; }
    void write(int, std::span<std::byte> to) override {
        if (part_ == 0) std::ranges::copy(samples_, to.begin());
    }
    void read(int part, std::span<const std::byte> from) override {
        if (part == 0 && part_ != 0) std::ranges::copy(from, samples_.begin());
    }

private:
    int part_;
    std::span<std::byte> samples_;
};

}  // namespace hpcai::training
