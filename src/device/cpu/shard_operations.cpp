// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include <hpcai/base/error.hpp>

#include "context.hpp"
#include "numbers.hpp"

namespace hpcai::device::cpu {
namespace {

/// A value (N, H, W, C) or (N, C) whose channels are distributed over the shards of a network.
class ChannelShards {
public:
    /// `shape` has all channels; `exchange` must outlive the object.
    ChannelShards(const Shape& shape, DType dtype, ShardExchange* exchange, const Context& context)
        : global_shape_(shape), dtype_(dtype), exchange_(exchange), layouts_(context.layouts) {
        ensure(exchange != nullptr, "a shard of a network needs a ShardExchange");
        ensure(shape.rank() == 4 || shape.rank() == 2,
               "shards need values of 2 or 4 dimensions, got {}", to_string(shape));
        ensure(dtype == DType::f32 || dtype == DType::bf16, "shards exchange f32 or bf16, not {}",
               name_of(dtype));
        images_ = shape[0];
        pixels_ = shape.rank() == 4 ? shape[1] * shape[2] : 1;
    }

    /// Bytes of `sums` in scatter_sum().
    std::size_t workspace_bytes() const {
        return static_cast<std::size_t>(local_elements()) * sizeof(float);
    }

    /// Gathers `global` from all shards; `local` has the channels of this shard. Collective.
    void gather(const void* local, void* global) const {
        exchange_->exchange(
            {.bytes_to = [&](int) { return local_bytes(); },
             .bytes_from = [&](int shard) { return bytes_of(shard); },
             .write = [&](int,
                          std::span<std::byte> to) { std::memcpy(to.data(), local, to.size()); },
             .read =
                 [&](int shard, std::span<const std::byte> from) {
                     insert(shard, from.empty() ? local : from.data(), global);
                 }});
    }
    /// Sums `global` over all shards, in fp32 and in the order of the shards, and writes this
    /// shard's channels of the sum to `local`. Collective.
    void scatter_sum(const void* global, void* local, float* sums) const {
        std::fill_n(sums, local_elements(), 0.0f);
        exchange_->exchange(
            {.bytes_to = [&](int shard) { return bytes_of(shard); },
             .bytes_from = [&](int) { return local_bytes(); },
             .write = [&](int shard,
                          std::span<std::byte> to) { extract(shard, global, to.data()); },
             .read =
                 [&](int shard, std::span<const std::byte> from) {
                     // `local` has this shard's term until the sum is complete.
                     if (from.empty()) extract(shard, global, local);
                     add(from.empty() ? local : from.data(), sums);
                 }});
        store(sums, local);
    }
    /// Copies the channels of `shard` from `global`.
    void extract(int shard, const void* global, void* to) const {
        copy<false>(shard, static_cast<std::byte*>(to),
                    static_cast<std::byte*>(const_cast<void*>(global)));
    }
    /// Copies the channels of `shard` to `global`.
    void insert(int shard, const void* from, void* global) const {
        copy<true>(shard, static_cast<std::byte*>(const_cast<void*>(from)),
                   static_cast<std::byte*>(global));
    }

private:
    std::size_t bytes_of(int shard) const {
        return static_cast<std::size_t>(shape_of(shard).elements()) * size_of(dtype_);
    }
    std::size_t local_bytes() const { return bytes_of(exchange_->shard()); }
    /// Adds `term`, which has this shard's channels, to `sums`.
    void add(const void* term, float* sums) const {
        const std::int64_t elements = local_elements();
        const auto add_up = [&](const auto* numbers) {
#pragma omp parallel for simd schedule(static)
            for (std::int64_t i = 0; i < elements; ++i) sums[i] += to_float(numbers[i]);
        };
        if (dtype_ == DType::f32) return add_up(static_cast<const float*>(term));
        add_up(static_cast<const BFloat*>(term));
    }
    void store(const float* sums, void* local) const {
        const std::int64_t elements = local_elements();
        if (dtype_ == DType::f32) {
            std::memcpy(local, sums, workspace_bytes());
            return;
        }
        auto* to = static_cast<BFloat*>(local);
#pragma omp parallel for schedule(static)
        for (std::int64_t i = 0; i < elements; ++i) to[i] = to_bfloat(sums[i]);
    }

    /// The memory layout of a value: pixel p of channel c is at element (c / block) * block_stride
    /// + p * pixel_stride + c % block of its image.
    struct ChannelMap {
        std::int64_t block = 1;
        std::int64_t block_stride = 1;
        std::int64_t pixel_stride = 1;
        std::int64_t image_stride = 0;
        std::int64_t at(std::int64_t image, std::int64_t channel) const {
            return image * image_stride + channel / block * block_stride + channel % block;
        }
    };

    ChannelMap map_of(const Shape& shape) const {
        const std::int64_t channels = shape[shape.rank() - 1];
        const ChannelMap channels_last{channels, pixels_ * channels, channels, pixels_ * channels};
        if (shape.rank() == 2) return channels_last;
        const TileGrid grid = tile_grid(layouts_, shape, dtype_);
        const bool has_channels_last = grid.tile.stride == channels;
        if (has_channels_last) return channels_last;
        return {grid.tile.lanes, grid.tile_stride, grid.tile.stride, grid.image_stride};
    }
    Shape shape_of(int shard) const {
        Shape shape = global_shape_;
        std::int64_t& channels = shape[shape.rank() - 1];
        channels = ops::channel_range(channels, exchange_->shards(), shard).count;
        return shape;
    }
    std::int64_t local_elements() const {
        return shape_of(exchange_->shard()).elements();
    }
    /// Copies the channels of `shard` between `global` and `own`, which has only these.
    template <bool is_insert>
    void copy(int shard, std::byte* own, std::byte* global) const {
        const ChannelMap own_map = map_of(shape_of(shard)), global_map = map_of(global_shape_);
        const auto [first, count] =
            ops::channel_range(global_shape_[global_shape_.rank() - 1], exchange_->shards(), shard);
        const std::size_t size = size_of(dtype_);
#pragma omp parallel for schedule(static)
        for (std::int64_t image = 0; image < images_; ++image) {
            for (std::int64_t channel = 0; channel < count;) {
                const std::int64_t run =
                    std::min({count - channel, own_map.block - channel % own_map.block,
                              global_map.block - (first + channel) % global_map.block});
                // A run with no other channels between its pixels is one block of memory.
                const bool is_dense = own_map.pixel_stride == run && global_map.pixel_stride == run;
                const std::int64_t copies = is_dense ? 1 : pixels_;
                const auto bytes = static_cast<std::size_t>(is_dense ? pixels_ * run : run) * size;
                std::byte* a = own + static_cast<std::size_t>(own_map.at(image, channel)) * size;
                std::byte* b =
                    global + static_cast<std::size_t>(global_map.at(image, first + channel)) * size;
                for (std::int64_t i = 0; i < copies; ++i) {
                    std::memcpy(is_insert ? b : a, is_insert ? a : b, bytes);
                    a += static_cast<std::size_t>(own_map.pixel_stride) * size;
                    b += static_cast<std::size_t>(global_map.pixel_stride) * size;
                }
                channel += run;
            }
        }
    }

    Shape global_shape_;
    DType dtype_;
    ShardExchange* exchange_;
    Layouts layouts_;
    std::int64_t images_ = 0, pixels_ = 0;
};

/// Gradients have the compute type; op.dtype is the type of the values only.
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
        const void* global = output_gradient();
        void* local = tensors_.input_gradients[0];
        if (!op_.sums_gradients) return gradients_.extract(op_.shard, global, local);
        gradients_.scatter_sum(global, local, static_cast<float*>(tensors_.workspace));
    }

    ChannelShards values_, gradients_;
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

    ChannelShards values_;
};

}  // namespace

HPCAI_BUILD_KERNEL(AllGather)
HPCAI_BUILD_KERNEL(ReduceScatter)

}  // namespace hpcai::device::cpu
