// SPDX-License-Identifier: Apache-2.0
#include "crop_resize.hpp"
#include "elements.cuh"

namespace hpcai::kernels {
namespace {

constexpr int kTileWidth = 32, kTileHeight = 8;  // pixels of a block, one for each thread
constexpr int kTaps = 2 * ops::kMaxCropReduction + 1;
constexpr int kWeightBits = 22;  // fraction bits of fixed-point weights, as in Pillow
constexpr int kHalf = 1 << (kWeightBits - 1);

/// The source pixels and weights of an output pixel along one axis.
struct AxisTaps {
    int first, count;
    int weight[kTaps];
};
static_assert(sizeof(AxisTaps) / sizeof(int) % 2 == 1);  // odd: no bank conflicts

/// A product that the compiler does not fuse with a sum, because the CPU rounds them separately.
__device__ inline double unfused_product(double a, double b) {
    return fma(a, b, 0.0);
}

__device__ inline double triangle(double x) {
    x = fabs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}

__device__ void compute_taps(int size, int side, int index, AxisTaps& taps) {
    const double scale = static_cast<double>(size) / side;
    const double support = fmax(scale, 1.0), inverse = 1.0 / support;
    const double center = unfused_product(index + 0.5, scale);
    const int begin = static_cast<int>(center - support + 0.5);
    const int end = static_cast<int>(center + support + 0.5);
    const int first = begin > 0 ? begin : 0, past = end < size ? end : size;
    double sum = 0;
    for (int i = first; i < past; ++i) sum += triangle(unfused_product(i - center + 0.5, inverse));
    for (int i = first; i < past; ++i) {
        const double weight = triangle(unfused_product(i - center + 0.5, inverse)) / sum;
        taps.weight[i - first] = static_cast<int>(0.5 + weight * (1 << kWeightBits));
    }
    taps.first = first;
    taps.count = past - first;
}

/// Converts kHalf plus a sum of bytes times weights to a byte. The weights are not negative, and
/// their sum differs from 1 << kWeightBits by at most kTaps / 2, so no clamping is needed.
__device__ inline int rounded(int sum) {
    return sum >> kWeightBits;
}

/// One block for each tile of a resized image; blockIdx.y is the image, a row of the batch.
__global__ void crop_resize_kernel(ViewBatch batch, int tiles_across) {
    __shared__ AxisTaps column_taps[kTileWidth], row_taps[kTileHeight];
    const PictureView view = batch.views[blockIdx.y];
    if (view.offset_bytes < 0) return;
    const int left = static_cast<int>(blockIdx.x) % tiles_across * kTileWidth;
    const int top = static_cast<int>(blockIdx.x) / tiles_across * kTileHeight;
    const int thread = static_cast<int>(threadIdx.x);
    if (thread < kTileWidth) {
        if (left + thread < batch.side)
            compute_taps(view.width, batch.side, left + thread, column_taps[thread]);
    } else if (thread < kTileWidth + kTileHeight) {
        const int line = thread - kTileWidth;
        if (top + line < batch.side)
            compute_taps(view.height, batch.side, top + line, row_taps[line]);
    }
    __syncthreads();
    const int x = left + thread % kTileWidth, y = top + thread / kTileWidth;
    if (x >= batch.side || y >= batch.side) return;

    const AxisTaps& columns = column_taps[thread % kTileWidth];
    const AxisTaps& lines = row_taps[thread / kTileWidth];
    const std::int64_t stride = std::int64_t{3} * view.picture_width;
    const std::uint8_t* line = batch.pictures + view.offset_bytes +
                               (view.top + lines.first) * stride + 3 * (view.left + columns.first);
    int sum[3] = {kHalf, kHalf, kHalf};
    for (int j = 0; j < lines.count; ++j, line += stride) {
        int row_sum[3] = {kHalf, kHalf, kHalf};
        for (int i = 0; i < columns.count; ++i) {
            for (int c = 0; c < 3; ++c) row_sum[c] += columns.weight[i] * line[3 * i + c];
        }
        for (int c = 0; c < 3; ++c) sum[c] += lines.weight[j] * rounded(row_sum[c]);
    }
    const std::int64_t to_x = view.flip ? batch.side - 1 - x : x;
    const std::int64_t to_y = view.vertical_flip ? batch.side - 1 - y : y;
    std::uint8_t* to =
        batch.images + ((blockIdx.y * std::int64_t{batch.side} + to_y) * batch.side + to_x) * 3;
    for (int c = 0; c < 3; ++c) to[c] = static_cast<std::uint8_t>(rounded(sum[c]));
}

}  // namespace

void crop_resize(const ViewBatch& batch, Stream stream) {
    constexpr std::int64_t kMaxRows = 65535, kLargestSide = 1 << 15;
    if (batch.rows < 1 || batch.rows > kMaxRows || batch.side < 1 || batch.side > kLargestSide) {
        fail("crop_resize: expected 1 to 65535 rows and a side of 1 to 32768");
    }
    const std::int64_t tiles_across = divide_up(batch.side, kTileWidth);
    const std::int64_t tiles = tiles_across * divide_up(batch.side, kTileHeight);
    launch(crop_resize_kernel,
           {.blocks_x = tiles,
            .blocks_y = batch.rows,
            .threads = kTileWidth * kTileHeight,
            .stream = stream},
           batch, static_cast<int>(tiles_across));
}

}  // namespace hpcai::kernels
