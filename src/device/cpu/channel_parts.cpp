// SPDX-License-Identifier: Apache-2.0
#include "channel_parts.hpp"

#include <algorithm>
#include <cstring>

#include <hpcai/base/error.hpp>

#include "numbers.hpp"

namespace hpcai::device::cpu {
namespace {

class GatherMessages final : public PartMessages {
public:
    GatherMessages(const ChannelParts& parts, const void* mine, void* whole)
        : parts_(parts), mine_(mine), whole_(whole) {}

    std::size_t bytes_to(int) const override { return parts_.bytes_of(parts_.exchange().part()); }
    std::size_t bytes_from(int part) const override { return parts_.bytes_of(part); }
    void write(int, std::span<std::byte> to) override { std::memcpy(to.data(), mine_, to.size()); }
    void read(int part, std::span<const std::byte> from) override {
        parts_.put(part, from.empty() ? mine_ : from.data(), whole_);
    }

private:
    const ChannelParts& parts_;
    const void* mine_;
    void* whole_;
};

/// `mine` is scratch until the sum is complete.
class SumMessages final : public PartMessages {
public:
    SumMessages(const ChannelParts& parts, const void* whole, void* mine, float* sums)
        : parts_(parts), whole_(whole), mine_(mine), sums_(sums) {}

    std::size_t bytes_to(int part) const override { return parts_.bytes_of(part); }
    std::size_t bytes_from(int) const override { return parts_.bytes_of(parts_.exchange().part()); }
    void write(int part, std::span<std::byte> to) override { parts_.take(part, whole_, to.data()); }
    void read(int part, std::span<const std::byte> from) override {
        if (from.empty()) parts_.take(part, whole_, mine_);
        parts_.add(from.empty() ? mine_ : from.data(), sums_);
    }

private:
    const ChannelParts& parts_;
    const void* whole_;
    void* mine_;
    float* sums_;
};

}  // namespace

ChannelParts::ChannelParts(const Shape& whole, DType dtype, ShardExchange* exchange,
                           const Context& context)
    : whole_(whole), dtype_(dtype), exchange_(exchange), layouts_(context.layouts) {
    ensure(exchange != nullptr, "a shard of a network needs an exchange");
    ensure(whole.rank() == 4 || whole.rank() == 2, "the channels of {} cannot be divided",
           to_string(whole));
    ensure(dtype == DType::f32 || dtype == DType::bf16, "{} cannot be summed over shards",
           name_of(dtype));
    images_ = whole[0];
    pixels_ = whole.rank() == 4 ? whole[1] * whole[2] : 1;
}

Shape ChannelParts::shape_of(int part) const {
    Shape shape = whole_;
    std::int64_t& channels = shape[shape.rank() - 1];
    channels = ops::channel_range(channels, exchange_->parts(), part).count;
    return shape;
}

std::size_t ChannelParts::bytes_of(int part) const {
    return static_cast<std::size_t>(shape_of(part).elements()) * size_of(dtype_);
}

std::size_t ChannelParts::workspace_bytes() const {
    return static_cast<std::size_t>(shape_of(exchange_->part()).elements()) * sizeof(float);
}

ChannelParts::Place ChannelParts::place_of(const Shape& shape) const {
    const std::int64_t channels = shape[shape.rank() - 1];
    const Place rows{channels, pixels_ * channels, channels, pixels_ * channels};
    if (shape.rank() == 2) return rows;
    const TileGrid grid = tile_grid(layouts_, shape, dtype_);
    const bool has_channels_last = grid.tile.stride == channels;
    if (has_channels_last) return rows;
    return {grid.tile.lanes, grid.tile_stride, grid.tile.stride, grid.image_stride};
}

template <bool is_put>
void ChannelParts::copy(int part, std::byte* own, std::byte* whole) const {
    const Place in_own = place_of(shape_of(part)), in_whole = place_of(whole_);
    const auto [first, count] =
        ops::channel_range(whole_[whole_.rank() - 1], exchange_->parts(), part);
    const std::size_t size = size_of(dtype_);
#pragma omp parallel for schedule(static)
    for (std::int64_t image = 0; image < images_; ++image) {
        for (std::int64_t channel = 0; channel < count;) {
            const std::int64_t run =
                std::min({count - channel, in_own.block - channel % in_own.block,
                          in_whole.block - (first + channel) % in_whole.block});
            const bool is_dense = in_own.pixel_stride == run && in_whole.pixel_stride == run;
            const std::int64_t rows = is_dense ? 1 : pixels_;
            const auto bytes = static_cast<std::size_t>(is_dense ? pixels_ * run : run) * size;
            std::byte* a = own + static_cast<std::size_t>(in_own.at(image, channel)) * size;
            std::byte* b =
                whole + static_cast<std::size_t>(in_whole.at(image, first + channel)) * size;
            for (std::int64_t row = 0; row < rows; ++row) {
                std::memcpy(is_put ? b : a, is_put ? a : b, bytes);
                a += static_cast<std::size_t>(in_own.pixel_stride) * size;
                b += static_cast<std::size_t>(in_whole.pixel_stride) * size;
            }
            channel += run;
        }
    }
}

void ChannelParts::take(int part, const void* whole, void* to) const {
    copy<false>(part, static_cast<std::byte*>(to),
                static_cast<std::byte*>(const_cast<void*>(whole)));
}

void ChannelParts::put(int part, const void* from, void* whole) const {
    copy<true>(part, static_cast<std::byte*>(const_cast<void*>(from)),
               static_cast<std::byte*>(whole));
}

void ChannelParts::add(const void* term, float* sums) const {
    const std::int64_t elements = shape_of(exchange_->part()).elements();
    const auto add_up = [&](const auto* numbers) {
#pragma omp parallel for simd schedule(static)
        for (std::int64_t i = 0; i < elements; ++i) sums[i] += to_float(numbers[i]);
    };
    if (dtype_ == DType::f32) return add_up(static_cast<const float*>(term));
    add_up(static_cast<const BFloat*>(term));
}

void ChannelParts::store(const float* sums, void* mine) const {
    const std::int64_t elements = shape_of(exchange_->part()).elements();
    if (dtype_ == DType::f32) {
        std::memcpy(mine, sums, static_cast<std::size_t>(elements) * sizeof(float));
        return;
    }
    auto* to = static_cast<BFloat*>(mine);
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < elements; ++i) to[i] = to_bfloat(sums[i]);
}

void ChannelParts::gather(const void* mine, void* whole) const {
    GatherMessages messages(*this, mine, whole);
    exchange_->exchange(messages);
}

void ChannelParts::scatter_sum(const void* whole, void* mine, float* workspace) const {
    std::fill_n(workspace, shape_of(exchange_->part()).elements(), 0.0f);
    SumMessages messages(*this, whole, mine, workspace);
    exchange_->exchange(messages);
    store(workspace, mine);
}

}  // namespace hpcai::device::cpu
