// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <hpcai/tensor/dtype.hpp>

/// The engine's own inner loops, compiled once per instruction set. Each call is single-threaded.
namespace hpcai::device::cpu {

/// `lanes` channels of one image: pixel p is at p * stride, and its channels are contiguous.
/// Pointers to values are to the first element of the tile; elements are f32 or bf16.
struct Tile {
    std::int64_t pixels = 0;
    std::int64_t stride = 0;  // elements
    int lanes = 1;            // 16, 8 or 1
    tensor::DType dtype = tensor::DType::f32;
};

/// sum[l] = sum over pixels of (x - pivot[l]), squares[l] = sum over pixels of (x - pivot[l])^2.
struct StatisticsTile {
    const void* x;
    const float* pivot;  // (lanes)
    float* sum;          // (lanes)
    float* squares;      // (lanes)
};

/// y = scale x + shift + residual, then max(y, 0) with `relu`. A null residual is 0.
struct ApplyTile {
    const void* x;
    const void* residual;
    void* y;
    const float* scale;  // (lanes)
    const float* shift;  // (lanes)
    bool relu;
};

/// The gradient g of the affine output of a normalization: dy0 + dy1, where a null dy1 is 0. With
/// `relu`, g is 0 where the ReLU was 0: where `y` <= 0 or, if `y` is null, scale x + shift <= 0.
struct GradientSource {
    const void* dy0;
    const void* dy1;
    const void* x;
    const void* y;       // null: computed from x
    const float* scale;  // (lanes)
    const float* shift;  // (lanes)
    bool relu;
};

/// sum[l] = sum of g, products[l] = sum of g (x - mean[l]); `masked`, unless null, receives g.
struct GradientSumsTile {
    GradientSource source;
    void* masked;
    const float* mean;  // (lanes)
    float* sum;         // (lanes)
    float* products;    // (lanes)
};

/// dx = a g + b x + c.
struct GradientApplyTile {
    GradientSource source;
    void* dx;
    const float* a;  // (lanes)
    const float* b;  // (lanes)
    const float* c;  // (lanes)
};

/// `length` elements of an optimizer step (hpcai/ops/optimizer_rule.hpp has the formulas).
struct StepSpan {
    float* parameters;
    const float* gradients;
    float* first_state;   // m of Adam and LAMB, v of SGD and LARS, s of AdaGrad
    float* second_state;  // v of Adam and LAMB; else null
    std::size_t length;
};

/// SGD with momentum correction.
struct SgdCoefficients {
    float learning_rate;
    float gradient_factor;
    float momentum;
    float weight_decay;
    bool nesterov;
};

/// LARS, and SGD without momentum correction: v = momentum v + s g, where s is gradient_scale; then
/// w -= rate v or, with Nesterov, w -= rate (s g + momentum v).
struct MomentumCoefficients {
    float gradient_factor;
    float momentum;
    float weight_decay;
    bool nesterov;
    float gradient_scale;
    float rate;
};

/// Updates of the moments m and v in Adam and LAMB.
struct MomentCoefficients {
    float gradient_factor;
    float gradient_decay;  // g = gradient_factor gradient + gradient_decay w
    float beta1, one_minus_beta1;
    float beta2, one_minus_beta2;
};

/// w is multiplied by `decay_factor`, then w -= rate m / (root_scale sqrt(v) + epsilon).
struct AdamCoefficients {
    MomentCoefficients moments;
    float decay_factor;
    float rate;        // lr / (1 - beta1^t)
    float root_scale;  // 1 / sqrt(1 - beta2^t)
    float epsilon;
};

/// u = mean_scale m / (root_scale sqrt(v) + epsilon) + weight_decay w.
struct LambCoefficients {
    MomentCoefficients moments;
    float mean_scale;  // 1 / (1 - beta1^t)
    float root_scale;  // 1 / sqrt(1 - beta2^t)
    float epsilon;
    float weight_decay;
};

struct AdaGradCoefficients {
    float gradient_factor;
    float weight_decay;
    float rate;
    float epsilon;
};

/// Sums of exact squares in double, in an order that depends only on the length.
struct SquareSums {
    double parameters = 0;
    double others = 0;  // gradients, or u of LAMB
};

/// Pixel p of a row of y is the sum of pixel p of x and pixel column[p] of z.
struct UpsampleRow {
    const void* x;
    const void* coarse;  // z
    void* y;
    const std::int32_t* column;  // (pixels)
};

/// Pixel p of a row of dz is the sum of dy0 + dy1 over `rows` rows and over the columns from
/// first_column[p] up to first_column[p + 1], exclusive. A null dy1 is 0.
struct DownsampleRow {
    const void* dy0;  // the first of the rows
    const void* dy1;
    void* dz;
    std::int64_t rows;
    std::int64_t width;                // of a row of dy, in pixels
    const std::int32_t* first_column;  // (pixels + 1)
};

/// A position between rows or columns `low` and `high` of an image, with their interpolation
/// weights.
struct AxisSample {
    std::int32_t low;
    std::int32_t high;
    float low_weight;
    float high_weight;
};

/// A region as pooled x pooled bins, each the mean of samples x samples interpolated values.
struct RegionBins {
    const AxisSample* rows;     // (pooled * samples)
    const AxisSample* columns;  // (pooled * samples)
    int pooled;
    int samples;
    std::int64_t width;  // of the image, in pixels
};

/// to = x / step as an integer from -127 to 127; undefined where x or inverse_step is NaN.
struct RoundTile {
    const float* x;
    const float* inverse_step;  // (lanes)
    std::int8_t* to;
    std::int64_t to_stride;  // elements between pixels
};

/// The weights of one filter: a row of channels for each tap.
struct FilterRows {
    const float* values;
    std::int64_t taps;
    std::int64_t channels;  // of a row, a multiple of 16
};

/// Random numbers to round a tile: Philox with counters (counter[0], b, counter[1], counter[2]),
/// where b counts from first_block. 16 blocks serve 128 elements, pixel after pixel: element e
/// takes half of word e / 32 of block e % 16, the lower half if e / 16 is even, else the upper.
struct Dither {
    std::uint32_t key[2];
    std::uint32_t counter[3];
    std::uint32_t first_block;
};

/// y = scale sum, from the integer sums of an int8 convolution.
struct SumsTile {
    const std::int32_t* sums;
    std::int64_t sums_stride;  // elements between pixels
    const float* scale;        // (lanes)
    float* y;
};

/// The coordinates and areas of boxes as separate arrays.
struct BoxColumns {
    float* x1;
    float* y1;
    float* x2;
    float* y2;
    float* area;
};
struct ReferenceBox {
    float x1, y1, x2, y2;
    float area, max_iou;
};

/// The loops for one instruction set.
struct SimdKernels {
    void (*statistics)(const Tile&, const StatisticsTile&);
    void (*apply)(const Tile&, const ApplyTile&);
    void (*gradient_sums)(const Tile&, const GradientSumsTile&);
    void (*gradient_apply)(const Tile&, const GradientApplyTile&);
    /// sum[l] = sum over pixels of x.
    void (*pixel_sum)(const Tile&, const void* x, float* sum);
    /// x = value[l] for every pixel.
    void (*pixel_fill)(const Tile&, const float* value, void* x);
    /// Converts rows of fp32, `lanes` numbers for each pixel, to x; load_floats converts back.
    void (*store_floats)(const Tile&, const float* rows, void* x);
    void (*load_floats)(const Tile&, const void* x, float* rows);
    void (*sgd)(const StepSpan&, const SgdCoefficients&);
    void (*momentum_step)(const StepSpan&, const MomentumCoefficients&);
    void (*adam)(const StepSpan&, const AdamCoefficients&);
    void (*adagrad)(const StepSpan&, const AdaGradCoefficients&);
    /// Returns the sums of squares of the parameters and of the gradients.
    SquareSums (*square_sums)(const StepSpan&);
    /// Updates the moments; returns the sums of squares of the parameters and of u.
    SquareSums (*lamb_moments)(const StepSpan&, const LambCoefficients&);
    /// w -= rate u.
    void (*lamb_step)(const StepSpan&, const LambCoefficients&, float rate);
    /// to[row * to_stride + column] = from[column * 16 + row], 16 rows of 16.
    void (*transpose_16x16)(const float* from, float* to, std::int64_t to_stride);
    /// Returns the sum in Device::hash() over `words` words, beginning with word `first`.
    std::uint64_t (*hash_words)(const float* pairs, std::int64_t words, std::int64_t first);
    void (*upsample_add)(const Tile&, const UpsampleRow&);
    void (*downsample_sum)(const Tile&, const DownsampleRow&);
    /// bins[b * lanes + l] = channel l of bin b of the region in image x.
    void (*gather_region)(const Tile&, const void* x, const RegionBins&, float* bins);
    /// Adds the gradients of the bins to dx; both are fp32, whatever the type of the tile.
    void (*scatter_region)(const Tile&, const float* bins, const RegionBins&, float* dx);
    /// Returns whether the IoU (ops::iou_of) of `box` and any of the boxes is above box.max_iou.
    bool (*overlaps)(const BoxColumns&, std::int64_t count, const ReferenceBox& box);
    // The functions below are for fp32 and tiles of 16 lanes.
    /// Updates largest[l], the largest bits of |x| in lane l. The bits of infinity and NaN are
    /// larger than those of finite numbers.
    void (*largest_bits)(const Tile&, const float* x, std::uint32_t* largest);
    /// Returns the largest bits in a filter; updates channel_maxima[c] with those of channel c.
    std::uint32_t (*largest_of_filter)(const FilterRows&, std::uint32_t* channel_maxima);
    /// Rounds to the nearest integer, ties to even.
    void (*round_to_int8)(const Tile&, const RoundTile&);
    /// Like round_to_int8() for a filter, with a step per channel; also reverses its taps.
    void (*round_rotated)(const FilterRows&, const float* inverse_steps, std::int8_t* to);
    /// Stochastic rounding: rounds x / step + (h + 1/2) / 2^16 - 1/2 to the nearest integer, where
    /// h is a random 16-bit integer.
    void (*dither_to_int8)(const Tile&, const RoundTile&, const Dither&);
    void (*scale_sums)(const Tile&, const SumsTile&);
};

// The loops compiled for each instruction set.
namespace baseline {
const SimdKernels& table();
}
namespace avx2 {
const SimdKernels& table();
}
namespace avx512 {
const SimdKernels& table();
}

// CMake compiles isa_x86.cpp or isa_other.cpp for the next three functions. In isa_other.cpp,
// has_native_bf16() and has_native_int8() return false.
/// Returns the engine's own loops, compiled for the instruction sets of this processor.
const SimdKernels& loops_for_this_cpu();

/// Returns whether the processor has instructions for bfloat16 products. Otherwise oneDNN emulates
/// bfloat16, which is slower than fp32.
bool has_native_bf16();

/// Returns whether the processor adds products of 8-bit integers in 32 bits (AVX-512 VNNI) and
/// oneDNN may use this. Otherwise oneDNN would saturate sums at 16 bits.
bool has_native_int8();

/// Implements Device::hash().
std::uint64_t hash_bits(std::span<const float> values, const SimdKernels& loops);

}  // namespace hpcai::device::cpu
