// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/device/shard_exchange.hpp>

#include "context.hpp"

namespace hpcai::device::cpu {

/// A value (N, H, W, C) or (N, C) whose channels are shared out among the parts of a network.
class ChannelParts {
public:
    /// `whole` is the value's shape; `exchange` outlives the object.
    ChannelParts(const Shape& whole, DType dtype, ShardExchange* exchange, const Context& context);

    std::size_t bytes_of(int part) const;
    /// Of scatter_sum().
    std::size_t workspace_bytes() const;

    /// `whole` from what each part has of it, of this one `mine`.
    void gather(const void* mine, void* whole) const;
    /// This part's channels of the sum of every part's `whole`, in fp32 and in the parts' order.
    void scatter_sum(const void* whole, void* mine, float* workspace) const;
    /// The channels of `part` of `whole`.
    void take(int part, const void* whole, void* to) const;
    /// The way back.
    void put(int part, const void* from, void* whole) const;

    ShardExchange& exchange() const { return *exchange_; }
    void add(const void* term, float* sums) const;
    void store(const float* sums, void* mine) const;

private:
    /// Where a value's channels lie: pixel p of channel c at (c / block) * block_stride +
    /// p * pixel_stride + c % block elements of its image.
    struct Place {
        std::int64_t block = 1;
        std::int64_t block_stride = 1;
        std::int64_t pixel_stride = 1;
        std::int64_t image_stride = 0;
        std::int64_t at(std::int64_t image, std::int64_t channel) const {
            return image * image_stride + channel / block * block_stride + channel % block;
        }
    };

    Place place_of(const Shape& shape) const;
    Shape shape_of(int part) const;
    /// Copies the channels of `part`, which are `slice` in `whole`.
    template <bool is_put>
    void copy(int part, std::byte* slice, std::byte* whole) const;

    Shape whole_;
    DType dtype_;
    ShardExchange* exchange_;
    Layouts layouts_;
    std::int64_t images_ = 0, pixels_ = 0;
};

}  // namespace hpcai::device::cpu
