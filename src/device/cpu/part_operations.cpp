// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include <hpcai/base/error.hpp>

#include "context.hpp"
#include "numbers.hpp"

namespace hpcai::device::cpu {
namespace {

/// A value (N, H, W, C) or (N, C) whose channels are distributed over the shards of a network.
class ChannelParts {
public:
    /// `whole` is the value's shape; `exchange` outlives the object.
    ChannelParts(const Shape& whole, DType dtype, ShardExchange* exchange, const Context& context)
        : whole_(whole), dtype_(dtype), exchange_(exchange), layouts_(context.layouts) {
        ensure(exchange != nullptr, "a shard of a network needs an exchange");
        ensure(whole.rank() == 4 || whole.rank() == 2, "the channels of {} cannot be divided",
               to_string(whole));
        ensure(dtype == DType::f32 || dtype == DType::bf16, "{} cannot be summed over shards",
               name_of(dtype));
        images_ = whole[0];
        pixels_ = whole.rank() == 4 ? whole[1] * whole[2] : 1;
    }

    std::size_t bytes_of(int part) const {
        return static_cast<std::size_t>(shape_of(part).elements()) * size_of(dtype_);
    }
    /// Bytes of the workspace of scatter_sum().
    std::size_t workspace_bytes() const {
        return static_cast<std::size_t>(own_elements()) * sizeof(float);
    }

    /// Gathers `whole` from all shards; `mine` has the channels of this shard. Collective.
    void gather(const void* mine, void* whole) const;
    /// Sums `whole` over all shards, in fp32 and in the order of the shards, and writes this
    /// shard's channels of the sum to `mine`. Collective.
    void scatter_sum(const void* whole, void* mine, float* workspace) const;
    /// Copies the channels of shard `part` from `whole`.
    void take(int part, const void* whole, void* to) const {
        copy<false>(part, static_cast<std::byte*>(to),
                    static_cast<std::byte*>(const_cast<void*>(whole)));
    }
    /// Copies the channels of shard `part` to `whole`.
    void put(int part, const void* from, void* whole) const {
        copy<true>(part, static_cast<std::byte*>(const_cast<void*>(from)),
                   static_cast<std::byte*>(whole));
    }

    ShardExchange& exchange() const { return *exchange_; }
    void add(const void* term, float* sums) const {
        const std::int64_t elements = own_elements();
        const auto add_up = [&](const auto* numbers) {
#pragma omp parallel for simd schedule(static)
            for (std::int64_t i = 0; i < elements; ++i) sums[i] += to_float(numbers[i]);
        };
        if (dtype_ == DType::f32) return add_up(static_cast<const float*>(term));
        add_up(static_cast<const BFloat*>(term));
    }
    void store(const float* sums, void* mine) const {
        const std::int64_t elements = own_elements();
        if (dtype_ == DType::f32) {
            std::memcpy(mine, sums, static_cast<std::size_t>(elements) * sizeof(float));
            return;
        }
        auto* to = static_cast<BFloat*>(mine);
#pragma omp parallel for schedule(static)
        for (std::int64_t i = 0; i < elements; ++i) to[i] = to_bfloat(sums[i]);
    }

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

    Place place_of(const Shape& shape) const {
        const std::int64_t channels = shape[shape.rank() - 1];
        const Place rows{channels, pixels_ * channels, channels, pixels_ * channels};
        if (shape.rank() == 2) return rows;
        const TileGrid grid = tile_grid(layouts_, shape, dtype_);
        const bool has_channels_last = grid.tile.stride == channels;
        if (has_channels_last) return rows;
        return {grid.tile.lanes, grid.tile_stride, grid.tile.stride, grid.image_stride};
    }
    Shape shape_of(int part) const {
        Shape shape = whole_;
        std::int64_t& channels = shape[shape.rank() - 1];
        channels = ops::channel_range(channels, exchange_->shards(), part).count;
        return shape;
    }
    std::int64_t own_elements() const {
        return shape_of(exchange_->shard()).elements();
    }
    /// Copies the channels of shard `part` between `own`, which has only these, and `whole`.
    template <bool is_put>
    void copy(int part, std::byte* own, std::byte* whole) const {
        const Place in_own = place_of(shape_of(part)), in_whole = place_of(whole_);
        const auto [first, count] =
            ops::channel_range(whole_[whole_.rank() - 1], exchange_->shards(), part);
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

    Shape whole_;
    DType dtype_;
    ShardExchange* exchange_;
    Layouts layouts_;
    std::int64_t images_ = 0, pixels_ = 0;
};

class GatherMessages final : public ShardMessages {
public:
    GatherMessages(const ChannelParts& parts, const void* mine, void* whole)
        : parts_(parts), mine_(mine), whole_(whole) {}

    std::size_t bytes_to(int) const override { return parts_.bytes_of(parts_.exchange().shard()); }
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
class SumMessages final : public ShardMessages {
public:
    SumMessages(const ChannelParts& parts, const void* whole, void* mine, float* sums)
        : parts_(parts), whole_(whole), mine_(mine), sums_(sums) {}

    std::size_t bytes_to(int part) const override { return parts_.bytes_of(part); }
    std::size_t bytes_from(int) const override {
        return parts_.bytes_of(parts_.exchange().shard());
    }
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

void ChannelParts::gather(const void* mine, void* whole) const {
    GatherMessages messages(*this, mine, whole);
    exchange_->exchange(messages);
}

void ChannelParts::scatter_sum(const void* whole, void* mine, float* workspace) const {
    std::fill_n(workspace, own_elements(), 0.0f);
    SumMessages messages(*this, whole, mine, workspace);
    exchange_->exchange(messages);
    store(workspace, mine);
}

/// Gradients have the compute type, whatever the type of the values.
class AllGatherKernel final : public OperationKernel<ops::AllGather, Context> {
public:
    AllGatherKernel(const ops::AllGather& op, const KernelOptions& options, const Context& context)
        : OperationKernel(op, options, context),
          values_(output_shape(op), op.dtype.value_or(options.compute), options.exchange, context),
          gradients_(output_shape(op), options.compute, options.exchange, context) {}

    KernelMemory memory() const override {
        return {.workspace_bytes = op_.sums_gradients ? gradients_.workspace_bytes() : 0};
    }

private:
    void forward() override { values_.gather(tensors_.inputs[0], tensors_.output); }
    void input_gradient() override {
        const void* whole = output_gradient();
        void* mine = tensors_.input_gradients[0];
        if (!op_.sums_gradients) return gradients_.take(op_.part, whole, mine);
        gradients_.scatter_sum(whole, mine, static_cast<float*>(tensors_.workspace));
    }

    ChannelParts values_, gradients_;
};

class ReduceScatterKernel final : public OperationKernel<ops::ReduceScatter, Context> {
public:
    ReduceScatterKernel(const ops::ReduceScatter& op, const KernelOptions& options,
                        const Context& context)
        : OperationKernel(op, options, context),
          values_(op.input, options.compute, options.exchange, context) {}

    KernelMemory memory() const override { return {.workspace_bytes = values_.workspace_bytes()}; }

private:
    void forward() override {
        values_.scatter_sum(tensors_.inputs[0], tensors_.output,
                            static_cast<float*>(tensors_.workspace));
    }
    void input_gradient() override {
        values_.gather(output_gradient(), tensors_.input_gradients[0]);
    }

    ChannelParts values_;
};

}  // namespace

KernelPtr build(const ops::AllGather& op, const KernelOptions& options, const Context& context) {
    return std::make_unique<AllGatherKernel>(op, options, context);
}

KernelPtr build(const ops::ReduceScatter& op, const KernelOptions& options,
                const Context& context) {
    return std::make_unique<ReduceScatterKernel>(op, options, context);
}

}  // namespace hpcai::device::cpu
