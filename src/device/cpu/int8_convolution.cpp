// SPDX-License-Identifier: Apache-2.0
#include "int8_convolution.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include <hpcai/base/error.hpp>
#include <hpcai/base/philox.hpp>

#include "working_copy.hpp"

namespace hpcai::device::cpu {
namespace {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
using tag = dnnl::memory::format_tag;
using type = dnnl::memory::data_type;

constexpr std::int64_t kLanes = 16;
constexpr std::int64_t kLargest = 127;
constexpr std::int64_t kDitheredElements = 128;  // by 16 blocks of random numbers
constexpr std::uint32_t kBlocksForThem = 16;

/// One step of rounding for numbers of which the largest has these bits. No less than the smallest
/// normal number, so that its inverse is finite.
float step_of(std::uint32_t largest_bits) {
    const float largest = std::bit_cast<float>(largest_bits);
    if (!(largest <= std::numeric_limits<float>::max())) {
        return std::numeric_limits<float>::quiet_NaN();
    }
    return std::max(largest / static_cast<float>(kLargest), std::numeric_limits<float>::min());
}

std::uint32_t largest_of(const std::array<std::uint32_t, kLanes>& bits) {
    return *std::ranges::max_element(bits);
}

/// Of `count` numbers that lie side by side, a multiple of kLanes.
std::uint32_t largest_of(const Loops& loops, const float* x, std::int64_t count) {
    std::array<std::uint32_t, kLanes> bits{};
    loops.largest_bits({count / kLanes, kLanes, kLanes}, x, bits.data());
    return largest_of(bits);
}

std::array<float, kLanes> filled(float value) {
    std::array<float, kLanes> lanes;
    lanes.fill(value);
    return lanes;
}

std::size_t aligned(std::int64_t bytes) {
    return (static_cast<std::size_t>(bytes) + 63) / 64 * 64;
}

}  // namespace

Int8Convolution::Int8Convolution(const ops::Convolution& op, ops::Pass pass,
                                 const RoundingKey& rounding, const Context& context)
    : context_(context),
      is_gradient_(pass == ops::Pass::input_gradient),
      rounding_(rounding),
      filters_(op.filters),
      taps_(op.kernel * op.kernel),
      channels_(op.input[3]),
      image_(is_gradient_ ? output_shape(op) : op.input),
      result_(is_gradient_ ? op.input : output_shape(op)) {
    ensure(rounding.model < 1u << 16 && rounding.rank < 1u << 16 && rounding.node < 1u << 24,
           "no random numbers to round with for model {}, rank {}, node {}", rounding.model,
           rounding.rank, rounding.node);
    plan(op);
    pack_ = Reorder(plain_filters_, packed_filters_, context);
    image_bytes_ = aligned(image_.elements());
    sums_bytes_ = aligned(result_.elements() * std::int64_t{sizeof(std::int32_t)});
    plain_bytes_ = aligned(filters_ * taps_ * channels_);
    packed_bytes_ = aligned_bytes(packed_filters_);
    step_bytes_ = aligned(result_[3] * std::int64_t{sizeof(float)});
}

/// oneDNN has convolutions in int8 between images with channels last only.
void Int8Convolution::plan(const ops::Convolution& op) {
    const auto image = [](const Shape& shape, type dtype) {
        return Desc({shape[0], shape[3], shape[1], shape[2]}, dtype, tag::nhwc);
    };
    const Dims dims{result_[3], image_[3], op.kernel, op.kernel};
    // The master's order, in which the gradient's result channels come last.
    plain_filters_ = Desc(dims, type::s8, is_gradient_ ? tag::ihwo : tag::ohwi);
    const std::int64_t padding = is_gradient_ ? op.kernel - 1 - op.padding : op.padding;
    const dnnl::convolution_forward::primitive_desc plan(
        {dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct,
         image(image_, type::s8), Desc(dims, type::s8, tag::any), image(result_, type::s32),
         Dims{op.stride, op.stride}, Dims{padding, padding}, Dims{padding, padding}},
        caller_scratchpad(), context_.engine);
    packed_filters_ = plan.weights_desc();
    primitive_ = Primitive(dnnl::convolution_forward(plan), plan.scratchpad_desc(), context_);
    primitive_.add(DNNL_ARG_SRC, plan.src_desc(), context_);
    primitive_.add(DNNL_ARG_WEIGHTS, packed_filters_, context_);
    primitive_.add(DNNL_ARG_DST, plan.dst_desc(), context_);
}

std::size_t Int8Convolution::workspace_bytes() const {
    return std::max(step_bytes_ + image_bytes_ + sums_bytes_ + primitive_.scratchpad_bytes(),
                    plain_bytes_);
}

void Int8Convolution::bind(const Places& places) {
    places_ = places;
    auto* prepared = static_cast<std::byte*>(places.prepared);
    auto* workspace = static_cast<std::byte*>(places.workspace);
    plain_ = reinterpret_cast<std::int8_t*>(workspace);
    scales_ = reinterpret_cast<float*>(workspace);
    rounded_ = reinterpret_cast<std::int8_t*>(workspace + step_bytes_);
    sums_ = reinterpret_cast<std::int32_t*>(workspace + step_bytes_ + image_bytes_);
    steps_ = reinterpret_cast<float*>(prepared + packed_bytes_);
    pack_.set(plain_, prepared);
    primitive_.set_scratchpad(workspace + step_bytes_ + image_bytes_ + sums_bytes_);
    primitive_.set(DNNL_ARG_SRC, rounded_);
    primitive_.set(DNNL_ARG_WEIGHTS, prepared);
    primitive_.set(DNNL_ARG_DST, sums_);
}

void Int8Convolution::prepare() {
    if (is_gradient_) {
#pragma omp parallel for schedule(static)
        for (std::int64_t channel = 0; channel < channels_; channel += kLanes) find_steps(channel);
    }
#pragma omp parallel for schedule(static)
    for (std::int64_t filter = 0; filter < filters_; ++filter) {
        is_gradient_ ? prepare_turned_filter(filter) : prepare_filter(filter);
    }
    pack_.run(context_);
}

void Int8Convolution::prepare_filter(std::int64_t filter) const {
    const std::int64_t first = filter * taps_ * channels_;
    const float* master = places_.filters + first;
    steps_[filter] = step_of(largest_of(*context_.loops, master, taps_ * channels_));
    const auto inverse = filled(1 / steps_[filter]);
    context_.loops->round_to_int8({taps_ * channels_ / kLanes, kLanes, kLanes},
                                  {master, inverse.data(), plain_ + first, kLanes});
}

/// Of kLanes input channels.
void Int8Convolution::find_steps(std::int64_t first_channel) const {
    std::array<std::uint32_t, kLanes> bits{};
    context_.loops->largest_bits({filters_ * taps_, channels_, kLanes},
                                 places_.filters + first_channel, bits.data());
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
        steps_[first_channel + lane] = step_of(bits[static_cast<std::size_t>(lane)]);
    }
}

void Int8Convolution::prepare_turned_filter(std::int64_t filter) const {
    const std::int64_t first = filter * taps_ * channels_;
    const std::int64_t last = first + (taps_ - 1) * channels_;
    for (std::int64_t channel = 0; channel < channels_; channel += kLanes) {
        std::array<float, kLanes> inverse;
        for (std::int64_t lane = 0; lane < kLanes; ++lane) {
            inverse[static_cast<std::size_t>(lane)] = 1 / steps_[channel + lane];
        }
        context_.loops->round_to_int8({taps_, channels_, kLanes},
                                      {places_.filters + first + channel, inverse.data(),
                                       plain_ + channel + last, -channels_});
    }
}

void Int8Convolution::run() {
    const float image_step = round_image();
    primitive_.run(context_);
    for (std::int64_t channel = 0; channel < result_[3]; ++channel) {
        scales_[channel] = image_step * steps_[channel];
    }
    const TileGrid grid = tile_grid(context_.layouts, result_, DType::f32);
    const std::int64_t pixels = grid.tile.pixels, channels = result_[3];
#pragma omp parallel for collapse(2) schedule(static)
    for (std::int64_t image = 0; image < grid.images; ++image) {
        for (std::int64_t index = 0; index < grid.tiles; ++index) {
            const std::int64_t channel = index * grid.tile.lanes;
            const std::int32_t* sums = sums_ + image * pixels * channels + channel;
            auto* y = static_cast<float*>(grid.at(places_.result, image, index));
            context_.loops->scale_sums(grid.tile, {sums, channels, scales_ + channel, y});
        }
    }
}

/// Gives the image's step.
float Int8Convolution::round_image() const {
    constexpr std::int64_t kPart = 1 << 14;
    const std::int64_t elements = image_.elements();
    std::uint32_t largest = 0;
#pragma omp parallel for schedule(static) reduction(max : largest)
    for (std::int64_t first = 0; first < elements; first += kPart) {
        largest = std::max(largest, largest_of(*context_.loops, places_.image + first,
                                               std::min(kPart, elements - first)));
    }
    const float step = step_of(largest);
    const auto inverse = filled(1 / step);
    const TileGrid grid = tile_grid(context_.layouts, image_, DType::f32);
    const std::int64_t pixels = grid.tile.pixels, channels = image_[3];
#pragma omp parallel for collapse(2) schedule(static)
    for (std::int64_t image = 0; image < grid.images; ++image) {
        for (std::int64_t index = 0; index < grid.tiles; ++index) {
            std::int8_t* to = rounded_ + image * pixels * channels + index * grid.tile.lanes;
            const RoundTile task{static_cast<const float*>(grid.at(
                                     static_cast<const void*>(places_.image), image, index)),
                                 inverse.data(), to, channels};
            if (is_gradient_) {
                context_.loops->dither_to_int8(grid.tile, task,
                                               dither_of_tile(image * grid.tiles + index));
            } else {
                context_.loops->round_to_int8(grid.tile, task);
            }
        }
    }
    return step;
}

/// Random numbers that no other tile, kernel, step, rank or model has, nor any CounterStream.
Dither Int8Convolution::dither_of_tile(std::int64_t tile) const {
    const std::int64_t elements = image_[1] * image_[2] * kLanes;
    const std::int64_t groups = (elements + kDitheredElements - 1) / kDitheredElements;
    return {{static_cast<std::uint32_t>(rounding_.seed),
             static_cast<std::uint32_t>(rounding_.seed >> 32)},
            {static_cast<std::uint32_t>(RandomPurpose::rounding) << 24 | rounding_.node,
             places_.step->taken_steps + places_.step->skipped_steps,
             rounding_.model << 16 | rounding_.rank},
            static_cast<std::uint32_t>(tile * groups) * kBlocksForThem};
}

}  // namespace hpcai::device::cpu
