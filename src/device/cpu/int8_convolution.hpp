// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scratch.hpp"

namespace hpcai::device::cpu {

inline constexpr std::int64_t kInt8Lanes = 16;  // channels in a block

/// The filters of an int8 convolution in the layout of its primitive, and their rounding steps,
/// one for each channel of the result.
struct RoundedFilters {
    void* packed = nullptr;
    float* steps = nullptr;
};

/// Two copies of the filters of a convolution in int8: `plain` for the forward pass, with a step
/// per filter, and `rotated` by 180 degrees for the input gradient, with a step per input channel.
class Int8Filters {
public:
    /// `plain` and `rotated` are the s8 layouts of the primitives; `rotated` is absent if the input
    /// gradient is not computed in int8.
    Int8Filters(const ops::Convolution& op, const dnnl::memory::desc& plain,
                const std::optional<dnnl::memory::desc>& rotated, const Context& context);

    std::size_t prepared_bytes() const { return prepared_bytes_; }
    std::size_t workspace_bytes() const { return workspace_bytes_; }
    /// `master` is (K, R, S, C) f32.
    void bind(const float* master, void* prepared, void* workspace);
    const RoundedFilters& plain() const { return plain_.filters; }
    const RoundedFilters& rotated() const { return rotated_.filters; }
    /// Must be called after the filters have changed.
    void prepare();

private:
    struct Copy {
        Reorder pack;
        std::size_t packed_bytes = 0;
        std::int64_t step_count = 0;
        RoundedFilters filters;

        void set(const dnnl::memory::desc& rounded, const dnnl::memory::desc& packed,
                 const Context& context);
    };

    void lay_out(Scratch& prepared, Scratch& workspace);
    FilterRows rows(std::int64_t filter) const;
    void round_filters(std::int64_t block) const;
    void find_rotated_steps(std::int64_t first_channel) const;

    const Context& context_;
    std::int64_t filters_, taps_, channels_;  // K, R S, C
    bool has_rotated_;
    Copy plain_, rotated_;
    std::size_t prepared_bytes_ = 0, workspace_bytes_ = 0;

    const float* master_ = nullptr;
    std::int8_t* rounded_ = nullptr;    // (K, R S, C), first plain, then rotated
    float* inverse_ = nullptr;          // (C), inverse steps of the rotated filters
    std::uint32_t* largest_ = nullptr;  // (blocks of filters, C), bits of the largest |w|
};

/// One pass of a convolution, Pass::forward or Pass::input_gradient, in int8. The image (x or,
/// for the input gradient, dy) and the filters are rounded to multiples of a step, which is the
/// largest magnitude / 127. Each sample has its own step, so no sample affects the result of
/// another. The filters have one step for each channel of the result, because a step must not
/// change within a sum. In the forward pass that is one step per filter. The input gradient is a
/// convolution of dy with rotated filters, so it has one step per input channel. Values are rounded
/// to nearest, except dy, which is rounded stochastically to keep its mean. If a sample or the
/// filters of a result channel contain a number that is not finite, all its results are NaN.
class Int8Convolution {
public:
    /// `rounding` identifies the random numbers by which an input gradient rounds dy.
    Int8Convolution(const ops::Convolution& op, ops::Pass pass, const RoundingKey& rounding,
                    const Context& context);

    /// The packed layout of the filters; the input gradient needs rotated filters.
    const dnnl::memory::desc& packed_filters() const { return packed_filters_; }
    std::size_t workspace_bytes() const { return workspace_bytes_; }
    /// `image` and `result` are in the engine's layout. Only the input gradient reads `scalars`.
    struct Buffers {
        float* image;
        float* result;
        RoundedFilters filters;
        void* workspace;
        const StepScalars* scalars;
    };
    void bind(const Buffers& buffers);
    void run();

private:
    void plan(const ops::Convolution& op, std::int64_t padding);
    void lay_out(Scratch& workspace);
    void find_steps(std::int64_t first_sample) const;
    void round_samples(std::int64_t first) const;
    void scale_sums(std::int64_t first) const;
    Dither dither_of_tile(std::int64_t image, std::int64_t index) const;

    const Context& context_;
    Shape image_, result_;                 // (N, H, W, C) f32
    TileGrid image_grid_, result_grid_;    // of 16 lanes
    std::optional<RoundingKey> rounding_;  // absent: round to nearest
    dnnl::memory::desc packed_filters_;
    Primitive primitive_;
    std::int64_t samples_ = 0;        // processed at once
    std::int64_t parts_ = 0;          // of a sample; threads share them to find its largest |x|
    std::int64_t sample_blocks_ = 0;  // Philox blocks for each sample
    std::size_t workspace_bytes_ = 0;

    Buffers buffers_{};
    float* steps_ = nullptr;            // (samples)
    std::uint32_t* largest_ = nullptr;  // (samples, parts), bits of the largest |x|
    std::int8_t* rounded_ = nullptr;    // (samples, H, W, C)
    std::int32_t* sums_ = nullptr;      // (samples, P, Q, K)
    std::byte* scratchpad_ = nullptr;   // of primitive_
};

}  // namespace hpcai::device::cpu
