// SPDX-License-Identifier: Apache-2.0
#include "int8_convolution.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include <omp.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/philox.hpp>

namespace hpcai::device::cpu {
namespace {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
using tag = dnnl::memory::format_tag;
using type = dnnl::memory::data_type;

constexpr std::int64_t kPerBlock = 8;  // filters per block; divides op.filters (computes_in_int8)

constexpr std::int64_t kCachedBytes = 2 << 20;   // assumed cache per thread
constexpr std::int64_t kPart = 1 << 14;          // elements per part of a sample
constexpr std::int64_t kDitherBlocks = 16;       // Philox blocks that serve kDitheredElements
constexpr std::int64_t kDitheredElements = 128;  // elements; see Dither

std::int64_t elements_of_sample(const Shape& image) {
    return image.elements() / image[0];
}

/// Returns the number of samples, at least 1, whose intermediate results fit the threads' caches.
std::int64_t samples_in_cache(const Shape& image, const Shape& result) {
    const std::int64_t cache = kCachedBytes * omp_get_max_threads();
    // fp32 and int8 elements of the image, 32-bit sums and fp32 elements of the result
    const std::int64_t bytes = 5 * elements_of_sample(image) + 8 * elements_of_sample(result);
    const std::int64_t max_samples = std::clamp(cache / bytes, std::int64_t{1}, image[0]);
    return ceil_div(image[0], ceil_div(image[0], max_samples));
}

/// Returns the rounding step for numbers whose largest |x| has these bits: |x| / 127, but at least
/// the smallest normal number, so that the inverse is finite. NaN if |x| is not finite.
float int8_step(std::uint32_t largest_bits) {
    constexpr float kLargest = 127;
    const float largest = std::bit_cast<float>(largest_bits);
    if (!(largest <= std::numeric_limits<float>::max())) {
        return std::numeric_limits<float>::quiet_NaN();
    }
    return std::max(largest / kLargest, std::numeric_limits<float>::min());
}

}  // namespace

void Int8Filters::Copy::set(const Desc& rounded, const Desc& packed, const Context& context) {
    pack = Reorder(rounded, packed, context);
    packed_bytes = packed.get_size();
    step_count = dims_of(rounded)[0];
}

Int8Filters::Int8Filters(const ops::Convolution& op, const Desc& plain,
                         const std::optional<Desc>& rotated, const Context& context)
    : context_(context),
      filters_(op.filters),
      taps_(op.kernel * op.kernel),
      channels_(op.input[3]),
      has_rotated_(rotated.has_value()) {
    const Desc rounded({filters_, channels_, op.kernel, op.kernel}, type::s8, tag::ohwi);
    plain_.set(rounded, plain, context);
    if (has_rotated_) {
        // Both copies are (K, R, S, C) in memory; the input gradient reads C filters of K channels.
        const Dims dims{channels_, filters_, op.kernel, op.kernel};
        rotated_.set(Desc(dims, type::s8, tag::ihwo), *rotated, context);
    }
    Scratch prepared, workspace;
    lay_out(prepared, workspace);
    prepared_bytes_ = prepared.bytes();
    workspace_bytes_ = workspace.bytes();
}

void Int8Filters::lay_out(Scratch& prepared, Scratch& workspace) {
    for (Copy* copy : {&plain_, &rotated_}) {
        copy->filters.packed = prepared.take<std::byte>(copy->packed_bytes);
        copy->filters.steps = prepared.take<float>(copy->step_count);
    }
    rounded_ = workspace.take<std::int8_t>(filters_ * taps_ * channels_);
    inverse_ = workspace.take<float>(channels_);
    largest_ = workspace.take<std::uint32_t>(filters_ / kPerBlock * channels_);
}

void Int8Filters::bind(const float* master, void* prepared, void* workspace) {
    master_ = master;
    Scratch copies(prepared), buffers(workspace);
    lay_out(copies, buffers);
    for (Copy* copy : {&plain_, &rotated_}) copy->pack.set(rounded_, copy->filters.packed);
}

void Int8Filters::prepare() {
#pragma omp parallel for schedule(static)
    for (std::int64_t block = 0; block < filters_ / kPerBlock; ++block) round_filters(block);
    plain_.pack.run(context_);
    if (!has_rotated_) return;
#pragma omp parallel for schedule(static)
    for (std::int64_t channel = 0; channel < channels_; channel += kInt8Lanes) {
        find_rotated_steps(channel);
    }
#pragma omp parallel for schedule(static)
    for (std::int64_t filter = 0; filter < filters_; ++filter) {
        context_.loops->round_rotated(rows(filter), inverse_,
                                      rounded_ + filter * taps_ * channels_);
    }
    rotated_.pack.run(context_);
}

FilterRows Int8Filters::rows(std::int64_t filter) const {
    return {master_ + filter * taps_ * channels_, taps_, channels_};
}

/// Also finds the largest |w| of each channel in the block, for find_rotated_steps().
void Int8Filters::round_filters(std::int64_t block) const {
    std::uint32_t* maxima = largest_ + block * channels_;
    std::fill_n(maxima, channels_, 0);
    for (std::int64_t filter = block * kPerBlock; filter < (block + 1) * kPerBlock; ++filter) {
        const FilterRows filter_rows = rows(filter);
        plain_.filters.steps[filter] =
            int8_step(context_.loops->largest_of_filter(filter_rows, maxima));
        std::array<float, kInt8Lanes> inverse;
        inverse.fill(1 / plain_.filters.steps[filter]);
        std::int8_t* to = rounded_ + filter * taps_ * channels_;
        context_.loops->round_to_int8({taps_ * channels_ / kInt8Lanes, kInt8Lanes, kInt8Lanes},
                                      {filter_rows.values, inverse.data(), to, kInt8Lanes});
    }
}

void Int8Filters::find_rotated_steps(std::int64_t first_channel) const {
    for (std::int64_t channel = first_channel; channel < first_channel + kInt8Lanes; ++channel) {
        std::uint32_t largest = 0;
        for (std::int64_t block = 0; block < filters_ / kPerBlock; ++block) {
            largest = std::max(largest, largest_[block * channels_ + channel]);
        }
        rotated_.filters.steps[channel] = int8_step(largest);
        inverse_[channel] = 1 / rotated_.filters.steps[channel];
    }
}

Int8Convolution::Int8Convolution(const ops::Convolution& op, ops::Pass pass,
                                 const RoundingKey& rounding, const Context& context)
    : context_(context), image_(op.input), result_(output_shape(op)) {
    std::int64_t padding = op.padding;
    if (pass == ops::Pass::input_gradient) {
        std::swap(image_, result_);
        padding = op.kernel - 1 - op.padding;
        rounding_ = rounding;
    }
    image_grid_ = tile_grid(context.layouts, image_, DType::f32);
    result_grid_ = tile_grid(context.layouts, result_, DType::f32);
    ensure(image_grid_.tile.lanes == kInt8Lanes && result_grid_.tile.lanes == kInt8Lanes,
           "int8 requires tiles of 16 channels, got {} (image) and {} (result)",
           image_grid_.tile.lanes, result_grid_.tile.lanes);
    samples_ = samples_in_cache(image_, result_);
    plan(op, padding);
    parts_ = ceil_div(elements_of_sample(image_), kPart);
    sample_blocks_ = image_grid_.tiles * kDitherBlocks *
                     ceil_div(image_grid_.tile.pixels * kInt8Lanes, kDitheredElements);
    ensure(!rounding_ || (rounding_->model < 1u << 16 && rounding_->rank < 1u << 16 &&
                          rounding_->node < 1u << 16 && sample_blocks_ < std::int64_t{1} << 32),
           "int8 needs model, rank, node < 65536 and blocks < 2^32, got {}, {}, {}, {}",
           rounding.model, rounding.rank, rounding.node, sample_blocks_);
    Scratch counted;
    lay_out(counted);
    workspace_bytes_ = counted.bytes();
}

void Int8Convolution::lay_out(Scratch& workspace) {
    steps_ = workspace.take<float>(samples_);
    largest_ = workspace.take<std::uint32_t>(samples_ * parts_);
    rounded_ = workspace.take<std::int8_t>(samples_ * elements_of_sample(image_));
    sums_ = workspace.take<std::int32_t>(samples_ * elements_of_sample(result_));
    scratchpad_ = workspace.take<std::byte>(primitive_.scratchpad_bytes());
}

/// oneDNN has int8 convolutions only for channels-last images.
void Int8Convolution::plan(const ops::Convolution& op, std::int64_t padding) {
    const auto desc = [&](const Shape& shape, type dtype) {
        return Desc({samples_, shape[3], shape[1], shape[2]}, dtype, tag::nhwc);
    };
    const Desc filters({result_[3], image_[3], op.kernel, op.kernel}, type::s8, tag::any);
    const auto plan = plan_forward_pass<dnnl::convolution_forward>(
        context_.engine, dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct,
        desc(image_, type::s8), filters, desc(result_, type::s32), Dims{op.stride, op.stride},
        Dims{padding, padding}, Dims{padding, padding});
    packed_filters_ = plan.weights_desc();
    primitive_ = Primitive(dnnl::convolution_forward(plan), plan.scratchpad_desc(), context_);
    primitive_.add(DNNL_ARG_SRC, plan.src_desc(), context_);
    primitive_.add(DNNL_ARG_WEIGHTS, packed_filters_, context_);
    primitive_.add(DNNL_ARG_DST, plan.dst_desc(), context_);
}

void Int8Convolution::bind(const Buffers& buffers) {
    buffers_ = buffers;
    Scratch workspace(buffers.workspace);
    lay_out(workspace);
    primitive_.set_scratchpad(scratchpad_);
    primitive_.set(DNNL_ARG_SRC, rounded_);
    primitive_.set(DNNL_ARG_WEIGHTS, buffers.filters.packed);
    primitive_.set(DNNL_ARG_DST, sums_);
}

void Int8Convolution::run() {
    for (std::int64_t next = 0; next < image_[0]; next += samples_) {
        // If samples_ does not divide N, some samples are computed twice, with the same bits.
        const std::int64_t first = std::min(next, image_[0] - samples_);
        find_steps(first);
        round_samples(first);
        primitive_.run(context_);
        scale_sums(first);
    }
}

void Int8Convolution::find_steps(std::int64_t first_sample) const {
    const std::int64_t elements = elements_of_sample(image_);
#pragma omp parallel for collapse(2) schedule(static)
    for (std::int64_t image = 0; image < samples_; ++image) {
        for (std::int64_t part = 0; part < parts_; ++part) {
            const std::int64_t first = part * kPart, count = std::min(kPart, elements - first);
            std::array<std::uint32_t, kInt8Lanes> bits{};
            context_.loops->largest_bits({count / kInt8Lanes, kInt8Lanes, kInt8Lanes},
                                         buffers_.image + (first_sample + image) * elements + first,
                                         bits.data());
            largest_[image * parts_ + part] = *std::ranges::max_element(bits);
        }
    }
    for (std::int64_t image = 0; image < samples_; ++image) {
        const std::uint32_t* part_largest = largest_ + image * parts_;
        steps_[image] = int8_step(*std::max_element(part_largest, part_largest + parts_));
    }
}

void Int8Convolution::round_samples(std::int64_t first) const {
    const std::int64_t pixels = image_grid_.tile.pixels, channels = image_[3];
#pragma omp parallel for collapse(2) schedule(static)
    for (std::int64_t image = 0; image < samples_; ++image) {
        for (std::int64_t index = 0; index < image_grid_.tiles; ++index) {
            std::array<float, kInt8Lanes> inverse;
            inverse.fill(1 / steps_[image]);
            const void* x = image_grid_.at(buffers_.image, first + image, index);
            std::int8_t* to = rounded_ + image * pixels * channels + index * kInt8Lanes;
            const RoundTile task{static_cast<const float*>(x), inverse.data(), to, channels};
            if (rounding_) {
                context_.loops->dither_to_int8(image_grid_.tile, task,
                                               dither_of_tile(first + image, index));
            } else {
                context_.loops->round_to_int8(image_grid_.tile, task);
            }
        }
    }
}

void Int8Convolution::scale_sums(std::int64_t first) const {
    const std::int64_t pixels = result_grid_.tile.pixels, channels = result_[3];
#pragma omp parallel for collapse(2) schedule(static)
    for (std::int64_t image = 0; image < samples_; ++image) {
        for (std::int64_t index = 0; index < result_grid_.tiles; ++index) {
            const std::int64_t channel = index * kInt8Lanes;
            std::array<float, kInt8Lanes> scale;
            for (std::size_t lane = 0; lane < scale.size(); ++lane) {
                scale[lane] = steps_[image] * buffers_.filters.steps[channel + std::int64_t(lane)];
            }
            const std::int32_t* sums = sums_ + image * pixels * channels + channel;
            auto* y = static_cast<float*>(result_grid_.at(buffers_.result, first + image, index));
            context_.loops->scale_sums(result_grid_.tile, {sums, channels, scale.data(), y});
        }
    }
}

/// Returns the random numbers of a tile of a sample in one kernel, training step, rank and model.
/// No other tile and no CounterStream uses them. Samples are numbered over all micro-batches.
Dither Int8Convolution::dither_of_tile(std::int64_t image, std::int64_t index) const {
    const std::int64_t samples_of_2_to_32_blocks = (std::int64_t{1} << 32) / sample_blocks_;
    const std::int64_t sample = buffers_.scalars->micro_batch * image_[0] + image;
    const auto high = static_cast<std::uint32_t>(sample / samples_of_2_to_32_blocks);
    const std::int64_t low = sample % samples_of_2_to_32_blocks * sample_blocks_ +
                             index * (sample_blocks_ / image_grid_.tiles);
    return {{static_cast<std::uint32_t>(rounding_->seed),
             static_cast<std::uint32_t>(rounding_->seed >> 32)},
            {static_cast<std::uint32_t>(RandomPurpose::rounding) << 24 | (high & 0xff) << 16 |
                 rounding_->node,
             buffers_.scalars->taken_steps + buffers_.scalars->skipped_steps,
             rounding_->model << 16 | rounding_->rank},
            static_cast<std::uint32_t>(low)};
}

}  // namespace hpcai::device::cpu
