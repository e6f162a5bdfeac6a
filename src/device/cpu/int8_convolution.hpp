// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <hpcai/device/device.hpp>

#include "context.hpp"
#include "int8_filters.hpp"

namespace hpcai::device::cpu {

/// One pass of a convolution, Pass::forward or Pass::input_gradient, whose factors are rounded to
/// int8: x or dy and the filters, each to multiples of the largest amount / 127. Each sample has
/// one such step, so that no other has a part in its result, and so have the filters for each
/// channel of the result, since none of them may change within a sum: forward that is a filter, and
/// in the input gradient, which is a convolution of dy with the filters turned round, an input
/// channel of all filters. Factors are rounded to the nearest, but dy by chance, so that its mean
/// stays. Where a sample or the filters of a channel hold a number that is not finite, all that
/// they have a part in is NaN.
class Int8Convolution {
public:
    /// `rounding` names the random numbers of an input gradient.
    Int8Convolution(const ops::Convolution& op, ops::Pass pass, const RoundingKey& rounding,
                    const Context& context);

    /// How filters are to be packed: as they are or, for the input gradient, turned round.
    const dnnl::memory::desc& packed_filters() const { return packed_filters_; }
    std::size_t workspace_bytes() const;
    /// `image` and `result` in the engine's layout. Steps come from `step`, which the forward pass
    /// does not read.
    struct Places {
        const float* image;
        float* result;
        Int8Factors filters;
        void* workspace;
        const StepScalars* step;
    };
    void bind(const Places& places);
    void run();

private:
    void plan(const ops::Convolution& op, std::int64_t padding);
    void check_random_numbers() const;
    void find_steps(std::int64_t first) const;
    void round_samples(std::int64_t first) const;
    void scale_sums(std::int64_t first) const;
    Dither dither_of_tile(std::int64_t image, std::int64_t index) const;

    const Context& context_;
    Shape image_, result_;               // (N, H, W, C) f32
    TileGrid image_grid_, result_grid_;  // of 16 lanes
    std::optional<RoundingKey> chance_;  // none: to the nearest
    dnnl::memory::desc packed_filters_;
    Primitive primitive_;
    std::int64_t samples_ = 0;        // at a time
    std::int64_t parts_ = 0;          // of a sample, for its largest number
    std::int64_t sample_blocks_ = 0;  // of random numbers
    std::size_t step_bytes_ = 0, largest_bytes_ = 0, image_bytes_ = 0, sums_bytes_ = 0;

    Places places_{};
    float* steps_ = nullptr;            // (samples)
    std::uint32_t* largest_ = nullptr;  // (samples, parts), bits of |x|
    std::int8_t* rounded_ = nullptr;    // (samples, H, W, C)
    std::int32_t* sums_ = nullptr;      // (samples, P, Q, K)
};

}  // namespace hpcai::device::cpu
