// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "context.hpp"

namespace hpcai::device::cpu {

inline constexpr std::int64_t kInt8Lanes = 16;  // channels in a block

/// The filters of an int8 convolution in the layout of its primitive, and their steps, one for each
/// channel of the result.
struct Int8Factors {
    void* filters;
    const float* steps;
};

/// Returns the rounding step for numbers whose largest |x| has these bits: |x| / 127, NaN if |x| is
/// not finite, and at least the smallest normal number, so that its inverse is finite.
float int8_step(std::uint32_t largest_bits);

/// Two copies of the filters of a convolution in int8: `plain` for the forward pass, with a step
/// per filter, and `rotated` by 180 degrees for the input gradient, with a step per input channel.
class Int8Filters {
public:
    /// `plain` and `rotated` are the s8 layouts of the primitives; the latter is absent if the
    /// input gradient is not computed in int8.
    Int8Filters(const ops::Convolution& op, const dnnl::memory::desc& plain,
                const std::optional<dnnl::memory::desc>& rotated, const Context& context);

    std::size_t prepared_bytes() const { return plain_.bytes() + rotated_.bytes(); }
    std::size_t workspace_bytes() const;
    /// `master` is (K, R, S, C) f32.
    void bind(const float* master, void* prepared, void* workspace);
    const Int8Factors& plain() const { return plain_.factors; }
    const Int8Factors& rotated() const { return rotated_.factors; }
    /// Must be called after the filters have changed.
    void prepare();

private:
    struct Copy {
        std::size_t packed_bytes = 0, step_bytes = 0;
        Reorder pack;
        float* steps = nullptr;
        Int8Factors factors{};

        void plan(const dnnl::memory::desc& rounded, const dnnl::memory::desc& packed,
                  const Context& context);
        std::size_t bytes() const { return packed_bytes + step_bytes; }
        void bind(std::int8_t* rounded, std::byte* prepared);
    };

    FilterRows rows(std::int64_t filter) const;
    void round_filters(std::int64_t block) const;
    void find_rotated_steps(std::int64_t first_channel) const;

    const Context& context_;
    std::int64_t filters_, taps_, channels_;  // K, R S, C
    bool has_rotated_;
    Copy plain_, rotated_;
    std::size_t rounded_bytes_ = 0, inverse_bytes_ = 0;

    const float* master_ = nullptr;
    std::int8_t* rounded_ = nullptr;    // (K, R S, C), first plain, then rotated
    float* inverse_ = nullptr;          // (C), inverse steps of the rotated filters
    std::uint32_t* largest_ = nullptr;  // (blocks of filters, C), bits of |x|
};

}  // namespace hpcai::device::cpu
