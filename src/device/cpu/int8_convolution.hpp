// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include <hpcai/device/device.hpp>

#include "context.hpp"

namespace hpcai::device::cpu {

/// One pass of a convolution, Pass::forward or Pass::input_gradient, whose factors are rounded to
/// int8: image and filters both, each to multiples of the largest amount / 127. An image has one
/// such step, and so have the filters for each channel of the result, since none of them may change
/// within a sum: forward that is a filter, and in the input gradient, which is a convolution of dy
/// with the filters turned round, an input channel of all filters. Factors are rounded to the
/// nearest, but dy by chance, so that its mean stays. Where an image or the filters of a channel
/// hold a number that is not finite, all that they have a part in is NaN.
class Int8Convolution {
public:
    Int8Convolution(const ops::Convolution& op, ops::Pass pass, const RoundingKey& rounding,
                    const Context& context);

    std::size_t prepared_bytes() const { return packed_bytes_ + step_bytes_; }
    std::size_t workspace_bytes() const;
    /// `image` and `result` in the engine's layout; `filters` is the master. Steps come from
    /// `step`, which the forward pass does not read.
    struct Places {
        const float* image;
        float* result;
        const float* filters;
        void* prepared;
        void* workspace;
        const StepNumbers* step;
    };
    void bind(const Places& places);
    /// Called when the filters have changed.
    void prepare();
    void run();

private:
    void plan(const ops::Convolution& op);
    float round_image() const;
    Dither dither_of_tile(std::int64_t tile) const;
    void prepare_filter(std::int64_t filter) const;
    void find_steps(std::int64_t first_channel) const;
    void prepare_turned_filter(std::int64_t filter) const;

    const Context& context_;
    bool is_gradient_;
    RoundingKey rounding_;
    std::int64_t filters_, taps_, channels_;  // of the master (K, R S, C)
    Shape image_, result_;                    // (N, H, W, C) f32
    dnnl::memory::desc plain_filters_, packed_filters_;
    Primitive primitive_;
    Reorder pack_;
    std::size_t image_bytes_ = 0, sums_bytes_ = 0, plain_bytes_ = 0;
    std::size_t packed_bytes_ = 0, step_bytes_ = 0;  // the latter for each channel of the result

    Places places_{};
    float* steps_ = nullptr;          // (channels of the result), of the filters
    float* scales_ = nullptr;         // (channels of the result), of the sums
    std::int8_t* rounded_ = nullptr;  // (N, H, W, C)
    std::int32_t* sums_ = nullptr;    // (N, P, Q, K)
    std::int8_t* plain_ = nullptr;    // (K, R S, C), taps turned round for the gradient
};

}  // namespace hpcai::device::cpu
