// SPDX-License-Identifier: Apache-2.0
#include "int8_filters.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "working_copy.hpp"

namespace hpcai::device::cpu {
namespace {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
using tag = dnnl::memory::format_tag;
using type = dnnl::memory::data_type;

constexpr std::int64_t kBlock = 8;  // filters per block; divides the number of filters

std::size_t floats(std::int64_t count) {
    return aligned_bytes(Desc({count}, type::f32, tag::x));
}

}  // namespace

float int8_step(std::uint32_t largest_bits) {
    constexpr float kLargest = 127;
    const float largest = std::bit_cast<float>(largest_bits);
    if (!(largest <= std::numeric_limits<float>::max())) {
        return std::numeric_limits<float>::quiet_NaN();
    }
    return std::max(largest / kLargest, std::numeric_limits<float>::min());
}

void Int8Filters::Copy::plan(const Desc& rounded, const Desc& packed, const Context& context) {
    pack = Reorder(rounded, packed, context);
    packed_bytes = aligned_bytes(packed);
    step_bytes = floats(rounded.dims()[0]);
}

void Int8Filters::Copy::bind(std::int8_t* rounded, std::byte* prepared) {
    pack.set(rounded, prepared);
    steps = reinterpret_cast<float*>(prepared + packed_bytes);
    factors = {prepared, steps};
}

Int8Filters::Int8Filters(const ops::Convolution& op, const Desc& plain,
                         const std::optional<Desc>& rotated, const Context& context)
    : context_(context),
      filters_(op.filters),
      taps_(op.kernel * op.kernel),
      channels_(op.input[3]),
      has_rotated_(rotated.has_value()) {
    const Desc rounded({filters_, channels_, op.kernel, op.kernel}, type::s8, tag::ohwi);
    plain_.plan(rounded, plain, context);
    rounded_bytes_ = aligned_bytes(rounded);
    inverse_bytes_ = floats(channels_);
    if (!has_rotated_) return;
    // The memory order stays the same; the result channels of the gradient are its last axis.
    const Dims dims{channels_, filters_, op.kernel, op.kernel};
    rotated_.plan(Desc(dims, type::s8, tag::ihwo), *rotated, context);
}

std::size_t Int8Filters::workspace_bytes() const {
    return rounded_bytes_ + inverse_bytes_ + floats(filters_ / kBlock * channels_);
}

void Int8Filters::bind(const float* master, void* prepared, void* workspace) {
    master_ = master;
    auto* next = static_cast<std::byte*>(workspace);
    rounded_ = reinterpret_cast<std::int8_t*>(next);
    inverse_ = reinterpret_cast<float*>(next + rounded_bytes_);
    largest_ = reinterpret_cast<std::uint32_t*>(next + rounded_bytes_ + inverse_bytes_);
    auto* copies = static_cast<std::byte*>(prepared);
    plain_.bind(rounded_, copies);
    if (has_rotated_) rotated_.bind(rounded_, copies + plain_.bytes());
}

void Int8Filters::prepare() {
#pragma omp parallel for schedule(static)
    for (std::int64_t block = 0; block < filters_ / kBlock; ++block) round_filters(block);
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

/// Also finds the largest |x| of each channel, so that the master is read only once.
void Int8Filters::round_filters(std::int64_t block) const {
    std::uint32_t* maxima = largest_ + block * channels_;
    std::fill_n(maxima, channels_, 0);
    for (std::int64_t filter = block * kBlock; filter < (block + 1) * kBlock; ++filter) {
        const FilterRows filter_rows = rows(filter);
        plain_.steps[filter] = int8_step(context_.loops->largest_of_filter(filter_rows, maxima));
        std::array<float, kInt8Lanes> inverse;
        inverse.fill(1 / plain_.steps[filter]);
        std::int8_t* to = rounded_ + filter * taps_ * channels_;
        context_.loops->round_to_int8({taps_ * channels_ / kInt8Lanes, kInt8Lanes, kInt8Lanes},
                                      {filter_rows.values, inverse.data(), to, kInt8Lanes});
    }
}

/// Computes the steps of kInt8Lanes channels.
void Int8Filters::find_rotated_steps(std::int64_t first_channel) const {
    for (std::int64_t channel = first_channel; channel < first_channel + kInt8Lanes; ++channel) {
        std::uint32_t largest = 0;
        for (std::int64_t block = 0; block < filters_ / kBlock; ++block) {
            largest = std::max(largest, largest_[block * channels_ + channel]);
        }
        rotated_.steps[channel] = int8_step(largest);
        inverse_[channel] = 1 / rotated_.steps[channel];
    }
}

}  // namespace hpcai::device::cpu
