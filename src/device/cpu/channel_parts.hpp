// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/device/shard_exchange.hpp>

#include "context.hpp"

namespace hpcai::device::cpu {

/// A value (N, H, W, C) or (N, C) whose channels are distributed over the shards of a network.
class ChannelParts {
public:
    /// `whole` is the value's shape; `exchange` outlives the object.
    ChannelParts(const Shape& whole, DType dtype, ShardExchange* exchange, const Context& context);

    std::size_t bytes_of(int part) const;
    /// Bytes of the workspace of scatter_sum().
    std::size_t workspace_bytes() const;

    /// Gathers `whole` from all shards; `mine` has the channels of this shard. Collective.
    void gather(const void* mine, void* whole) const;
    /// Sums `whole` over all shards, in fp32 and in the order of the shards, and writes this
    /// shard's channels of the sum to `mine`. Collective.
    void scatter_sum(const void* whole, void* mine, float* workspace) const;
    /// Copies the channels of shard `part` from `whole`.
    void take(int part, const void* whole, void* to) const;
    /// Copies the channels of shard `part` to `whole`.
    void put(int part, const void* from, void* whole) const;

    ShardExchange& exchange() const { return *exchange_; }
    void add(const void* term, float* sums) const;
    void store(const float* sums, void* mine) const;

private:
    /// The layout of the channels of a value: pixel p of channel c is at element (c / block) *
    /// block_stride + p * pixel_stride + c % block of its image.
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
    /// Copies the channels of shard `part` between `own`, which has only these, and `whole`.
    template <bool is_put>
    void copy(int part, std::byte* own, std::byte* whole) const;

    Shape whole_;
    DType dtype_;
    ShardExchange* exchange_;
    Layouts layouts_;
    std::int64_t images_ = 0, pixels_ = 0;
};

}  // namespace hpcai::device::cpu
