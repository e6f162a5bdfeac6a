// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <hpcai/data/transforms.hpp>

// Functions with HPCAI_VECTOR_CLONES use AVX2 if the CPU has it, with the same integer results.
// Builds with sanitizers have no clones, because the loader selects clones before sanitizers start.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define HPCAI_VECTOR_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define HPCAI_VECTOR_CLONES
#endif

namespace hpcai::data {
namespace {

constexpr int kPrecisionBits = 32 - 8 - 2;  // as in Pillow: 8 bits of the pixel, 2 for overflow
constexpr std::int32_t kRoundingHalf = 1 << (kPrecisionBits - 1);

/// Filter weights of one axis: target pixel i is the sum over k < count[i] of
/// weight[i * taps + k] * source[first[i] + k].
struct Axis {
    int taps = 0;
    std::vector<int> first;
    std::vector<int> count;
    std::vector<std::int32_t> weight;  // fixed point, kPrecisionBits fractional bits
};

struct AxisRequest {
    int source_size;
    float from, to;  // edges of the box
    int target_size;
    int window_first, window_size;  // target pixels to compute
};

double triangle(double x) {
    x = std::abs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}

void set_weights(const AxisRequest& request, int position, Axis& axis) {
    // Like Pillow, computes the difference in float.
    const double scale = static_cast<double>(request.to - request.from) / request.target_size;
    const double support = std::max(scale, 1.0);
    const double center = request.from + (request.window_first + position + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(center - support + 0.5));
    const int end = std::min(request.source_size, static_cast<int>(center + support + 0.5));
    axis.first[position] = first;
    axis.count[position] = end - first;
    std::vector<double> weights(end - first);
    double sum = 0;
    const double inverse = 1.0 / support;
    for (int k = 0; k < end - first; ++k) {
        const double weight = triangle((k + first - center + 0.5) * inverse);
        weights[k] = weight;
        sum += weight;
    }
    for (std::size_t k = 0; k < weights.size(); ++k) {
        const double normalized = sum != 0.0 ? weights[k] / sum : weights[k];
        axis.weight[std::size_t{1} * position * axis.taps + k] =
            static_cast<std::int32_t>(0.5 + normalized * (1 << kPrecisionBits));
    }
}

Axis make_axis(const AxisRequest& request) {
    const double scale = static_cast<double>(request.to - request.from) / request.target_size;
    Axis axis;
    axis.taps = static_cast<int>(std::ceil(std::max(scale, 1.0))) * 2 + 1;
    axis.first.resize(request.window_size);
    axis.count.resize(request.window_size);
    axis.weight.assign(axis.first.size() * axis.taps, 0);
    for (int i = 0; i < request.window_size; ++i) set_weights(request, i, axis);
    return axis;
}

std::uint8_t to_byte(std::int32_t sum) {
    return static_cast<std::uint8_t>(std::clamp(sum >> kPrecisionBits, 0, 255));
}

/// Resizes one row. `source` has four bytes per pixel, so a tap is one 4-lane multiply-add.
HPCAI_VECTOR_CLONES void resize_row(const std::uint8_t* __restrict source, const Axis& axis,
                                    std::uint8_t* __restrict target) {
    const std::size_t size = axis.first.size();
    for (std::size_t i = 0; i < size; ++i) {
        const std::uint8_t* pixel = source + axis.first[i] * 4;
        const std::int32_t* weight = axis.weight.data() + i * axis.taps;
        std::int32_t sum[4] = {kRoundingHalf, kRoundingHalf, kRoundingHalf, kRoundingHalf};
        for (int k = 0; k < axis.count[i]; ++k) {
            for (int c = 0; c < 4; ++c) sum[c] += pixel[4 * k + c] * weight[k];
        }
        for (int c = 0; c < kImageChannels; ++c) target[i * 3 + c] = to_byte(sum[c]);
    }
}

HPCAI_VECTOR_CLONES void add_weighted_row(const std::uint8_t* __restrict row, std::int32_t weight,
                                          std::int32_t* __restrict sums, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) sums[i] += row[i] * weight;
}

HPCAI_VECTOR_CLONES void round_row(const std::int32_t* __restrict sums,
                                   std::uint8_t* __restrict target, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) target[i] = to_byte(sums[i]);
}

void widen_row(const std::uint8_t* source, int width, std::uint8_t* target) {
    for (int x = 0; x < width; ++x) {
        for (int c = 0; c < kImageChannels; ++c) target[4 * x + c] = source[3 * x + c];
    }
}

/// Resizes rows [first, first + rows) of the source along x. Returns (rows, window width, 3).
std::vector<std::uint8_t> horizontal_pass(const ImageView& source, const Axis& axis, int first,
                                          int rows) {
    const std::size_t row_bytes = axis.first.size() * kImageChannels;
    std::vector<std::uint8_t> out(row_bytes * rows);
    std::vector<std::uint8_t> wide(std::size_t{4} * source.width);
    for (int y = 0; y < rows; ++y) {
        widen_row(source.row(first + y), source.width, wide.data());
        resize_row(wide.data(), axis, out.data() + y * row_bytes);
    }
    return out;
}

void check(const ImageView& source, const ResizeRequest& request, std::size_t target_bytes) {
    const RealBox& box = request.box;
    ensure(box.left >= 0 && box.top >= 0 && box.right > box.left && box.bottom > box.top &&
               box.right <= static_cast<float>(source.width) &&
               box.bottom <= static_cast<float>(source.height),
           "resize box ({}, {}, {}, {}) of a {} x {} image", box.left, box.top, box.right,
           box.bottom, source.width, source.height);
    const PixelBox& window = request.window;
    ensure(window.left >= 0 && window.top >= 0 && window.width > 0 && window.height > 0 &&
               window.left + window.width <= request.width &&
               window.top + window.height <= request.height,
           "resize window ({}, {}, {} x {}) of {} x {}", window.left, window.top, window.width,
           window.height, request.width, request.height);
    ensure(target_bytes == std::size_t{kImageChannels} * window.width * window.height,
           "resize target of {} bytes", target_bytes);
}

}  // namespace

ResizeRequest full_resize_request(const ImageView& source, int width, int height) {
    return {{0, 0, static_cast<float>(source.width), static_cast<float>(source.height)},
            width,
            height,
            {0, 0, width, height}};
}

void resize_bilinear(const ImageView& source, const ResizeRequest& request,
                     std::span<std::uint8_t> target) {
    check(source, request, target.size());
    const RealBox& box = request.box;
    const PixelBox& window = request.window;
    const Axis x_axis =
        make_axis({source.width, box.left, box.right, request.width, window.left, window.width});
    const Axis y_axis =
        make_axis({source.height, box.top, box.bottom, request.height, window.top, window.height});

    const int first = y_axis.first.front();
    const int rows = y_axis.first.back() + y_axis.count.back() - first;
    const std::vector<std::uint8_t> resized_rows = horizontal_pass(source, x_axis, first, rows);

    const std::size_t row_bytes = std::size_t{kImageChannels} * window.width;
    std::vector<std::int32_t> sums(row_bytes);
    for (std::size_t y = 0; y < y_axis.first.size(); ++y) {
        std::fill(sums.begin(), sums.end(), kRoundingHalf);
        for (int k = 0; k < y_axis.count[y]; ++k) {
            const int row = y_axis.first[y] - first + k;
            add_weighted_row(resized_rows.data() + row * row_bytes,
                             y_axis.weight[y * y_axis.taps + k], sums.data(), row_bytes);
        }
        round_row(sums.data(), target.data() + y * row_bytes, row_bytes);
    }
}

}  // namespace hpcai::data
