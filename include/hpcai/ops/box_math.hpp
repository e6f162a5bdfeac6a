// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include <hpcai/ops/detection.hpp>

#if defined(__CUDACC__)
#define HPCAI_HOST_DEVICE __host__ __device__
#else
#define HPCAI_HOST_DEVICE
#endif

/// Box arithmetic in fp32, shared by CPU and GPU code. Each product and sum is rounded separately
/// (no FMA), so that matching, suppression and sampling agree on CPU and GPU. Only exp and log may
/// differ in their last bits.
namespace hpcai::ops {

struct Box {
    float x1 = 0;
    float y1 = 0;
    float x2 = 0;
    float y2 = 0;
};

/// The position and size of a box relative to a reference box, scaled by a BoxCoder.
struct BoxDeltas {
    float x = 0;
    float y = 0;
    float w = 0;
    float h = 0;
};

/// The largest log(decoded side / reference side), as in torchvision: log(1000 / 16).
inline constexpr float kMaxLogRatio = 4.135166556742356f;

HPCAI_HOST_DEVICE inline float rounded_product(float a, float b) {
#if defined(__CUDA_ARCH__)
    return __fmul_rn(a, b);
#else
    return a * b;
#endif
}

HPCAI_HOST_DEVICE inline float rounded_sum(float a, float b) {
#if defined(__CUDA_ARCH__)
    return __fadd_rn(a, b);
#else
    return a + b;
#endif
}

HPCAI_HOST_DEVICE inline float area_of(const Box& box) {
    return rounded_product(box.x2 - box.x1, box.y2 - box.y1);
}

/// Intersection over union; 0 for disjoint boxes, NaN for two boxes without area.
HPCAI_HOST_DEVICE inline float iou_of(const Box& a, const Box& b) {
    const float width = fmaxf(fminf(a.x2, b.x2) - fmaxf(a.x1, b.x1), 0.0f);
    const float height = fmaxf(fminf(a.y2, b.y2) - fmaxf(a.y1, b.y1), 0.0f);
    const float shared = rounded_product(width, height);
    return shared / rounded_sum(rounded_sum(area_of(a), area_of(b)), -shared);
}

/// Returns the deltas (see BoxCoder) from `reference` to `box`; both must have positive sides.
HPCAI_HOST_DEVICE inline BoxDeltas encode(const Box& box, const Box& reference,
                                          const BoxCoder& coder) {
    const float reference_width = reference.x2 - reference.x1;
    const float reference_height = reference.y2 - reference.y1;
    const float reference_x = rounded_sum(reference.x1, rounded_product(0.5f, reference_width));
    const float reference_y = rounded_sum(reference.y1, rounded_product(0.5f, reference_height));
    const float width = box.x2 - box.x1;
    const float height = box.y2 - box.y1;
    const float x = rounded_sum(box.x1, rounded_product(0.5f, width));
    const float y = rounded_sum(box.y1, rounded_product(0.5f, height));
    return {rounded_product(coder.weight_xy, x - reference_x) / reference_width,
            rounded_product(coder.weight_xy, y - reference_y) / reference_height,
            rounded_product(coder.weight_wh, logf(width / reference_width)),
            rounded_product(coder.weight_wh, logf(height / reference_height))};
}

/// Returns decoded side / reference side: exp(log_ratio), at most exp(kMaxLogRatio). NaN stays NaN.
HPCAI_HOST_DEVICE inline float decoded_ratio(float log_ratio) {
    return expf(log_ratio > kMaxLogRatio ? kMaxLogRatio : log_ratio);
}

/// Returns the box that has these deltas relative to `reference`.
HPCAI_HOST_DEVICE inline Box decode(const BoxDeltas& deltas, const Box& reference,
                                    const BoxCoder& coder) {
    const float width = reference.x2 - reference.x1;
    const float height = reference.y2 - reference.y1;
    const float x = rounded_sum(rounded_product(deltas.x / coder.weight_xy, width),
                                rounded_sum(reference.x1, rounded_product(0.5f, width)));
    const float y = rounded_sum(rounded_product(deltas.y / coder.weight_xy, height),
                                rounded_sum(reference.y1, rounded_product(0.5f, height)));
    const float half_width =
        rounded_product(0.5f, rounded_product(decoded_ratio(deltas.w / coder.weight_wh), width));
    const float half_height =
        rounded_product(0.5f, rounded_product(decoded_ratio(deltas.h / coder.weight_wh), height));
    return {x - half_width, y - half_height, rounded_sum(x, half_width),
            rounded_sum(y, half_height)};
}

/// Returns `box` clipped to an image of this size. A NaN becomes 0.
HPCAI_HOST_DEVICE inline Box clipped(const Box& box, float image_height, float image_width) {
    return {fminf(fmaxf(box.x1, 0.0f), image_width), fminf(fmaxf(box.y1, 0.0f), image_height),
            fminf(fmaxf(box.x2, 0.0f), image_width), fminf(fmaxf(box.y2, 0.0f), image_height)};
}

/// Returns a candidate's pseudo-random key in stage 0 (anchors) or 1 (regions). The candidates with
/// the smallest keys are sampled, in a tie the first. The key is the high half of SplitMix64's
/// finalizer (Stafford's variant 13), applied to
/// 2^32 * image_key + candidate + 0x9e3779b97f4a7c15 * (stage + 1).
HPCAI_HOST_DEVICE inline std::uint32_t sampling_key(std::uint32_t image_key, std::uint32_t stage,
                                                    std::uint32_t candidate) {
    std::uint64_t word = (static_cast<std::uint64_t>(image_key) << 32) + candidate +
                         0x9e3779b97f4a7c15ULL * (stage + 1);
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ULL;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebULL;
    return static_cast<std::uint32_t>((word ^ (word >> 31)) >> 32);
}

inline constexpr float kSmoothL1Beta = 1.0f / 9.0f;  // as in torchvision

/// Smooth L1 distance (Girshick 2015, equation 3) with PyTorch's parameter beta.
HPCAI_HOST_DEVICE inline float smooth_l1(float difference) {
    const float size = fabsf(difference);
    return size < kSmoothL1Beta ? 0.5f * size * size / kSmoothL1Beta : size - 0.5f * kSmoothL1Beta;
}

/// The derivative of smooth_l1; NaN for NaN.
HPCAI_HOST_DEVICE inline float smooth_l1_slope(float difference) {
    if (fabsf(difference) < kSmoothL1Beta) return difference / kSmoothL1Beta;
    if (difference < 0) return -1.0f;
    return difference > 0 ? 1.0f : difference;
}

/// Returns the pyramid level, 2 to 5, from which RoiAlign (its comment has the formula) reads the
/// features of a region.
HPCAI_HOST_DEVICE inline int pyramid_level(const Box& region) {
    const float level = floorf(4.0f + log2f(sqrtf(area_of(region)) / 224.0f) + 1e-6f);
    return static_cast<int>(fminf(fmaxf(level, 2.0f), 5.0f));
}

/// Returns the box of a row (x1, y1, x2, y2, ...).
HPCAI_HOST_DEVICE inline Box box_of(const float* row) {
    return {row[0], row[1], row[2], row[3]};
}

/// Returns whether a row (x1, y1, x2, y2, class) has a positive area and a positive class.
HPCAI_HOST_DEVICE inline bool is_box(const float* row) {
    return row[4] > 0 && row[2] > row[0] && row[3] > row[1];
}

HPCAI_HOST_DEVICE inline bool is_finite(float number) {
    return number - number == 0;
}
HPCAI_HOST_DEVICE inline bool is_finite(const Box& box) {
    return is_finite(box.x1) && is_finite(box.y1) && is_finite(box.x2) && is_finite(box.y2);
}

/// The sides of an image and the shortest valid side of a box, in pixels.
struct ImageBounds {
    float height = 0;
    float width = 0;
    float min_side = 0;
};
/// Clips `box` to the image. Returns false if it is not finite, or if a side of the clipped box is
/// below `min_side`.
HPCAI_HOST_DEVICE inline bool clip_to_image(Box& box, const ImageBounds& bounds) {
    if (!is_finite(box)) return false;
    box = clipped(box, bounds.height, bounds.width);
    return !(box.x2 - box.x1 < bounds.min_side) && !(box.y2 - box.y1 < bounds.min_side);
}

/// Returns the largest fp32 number that does not exceed `limit`. An fp32 number exceeds the result
/// if and only if it exceeds `limit`.
inline float rounded_down(double limit) {
    const auto nearest = static_cast<float>(limit);
    return static_cast<double>(nearest) > limit ? std::nextafter(nearest, -HUGE_VALF) : nearest;
}

/// Returns the maximum number of positives among `samples` samples: samples x share, rounded down.
inline std::int64_t positive_limit(std::int64_t samples, double share) {
    return static_cast<std::int64_t>(static_cast<double>(samples) * share);
}

/// The objects in one image.
struct ImageBoxes {
    const float* rows = nullptr;  // (count, 5): x1, y1, x2, y2 in pixels, class
    std::int64_t count = 0;
    int classes = 0;  // rows with a class outside 1 to classes - 1 are ignored
};

/// Returns the class of the smallest box that covers the point (x, y), in pixels; in a tie, that of
/// the first box; 0 if no box covers the point. x2 and y2 are exclusive.
HPCAI_HOST_DEVICE inline int class_at(const ImageBoxes& boxes, float x, float y) {
    int label = 0;
    float smallest_area = 0;
    for (std::int64_t row = 0; row < boxes.count; ++row) {
        const float* const box = boxes.rows + 5 * row;
        const bool has_class = box[4] >= 1 && box[4] < static_cast<float>(boxes.classes);
        if (!has_class || x < box[0] || y < box[1] || !(x < box[2]) || !(y < box[3])) continue;
        const float area = area_of({box[0], box[1], box[2], box[3]});
        if (label != 0 && !(area < smallest_area)) continue;
        label = static_cast<int>(box[4]);
        smallest_area = area;
    }
    return label;
}

/// Returns the class at the centre of cell (row, column) in a grid of squares of `stride` pixels.
HPCAI_HOST_DEVICE inline int cell_class(const ImageBoxes& boxes, std::int64_t stride,
                                        std::int64_t row, std::int64_t column) {
    const float half = 0.5f * static_cast<float>(stride);
    return class_at(boxes, static_cast<float>(column * stride) + half,
                    static_cast<float>(row * stride) + half);
}

}  // namespace hpcai::ops
