// SPDX-License-Identifier: Apache-2.0
#include "crop_resize.hpp"
#include "elements.cuh"

namespace hpcai::kernels {
namespace {

constexpr int kTileWidth = 32, kTileHeight = 8;  // pixels of a block, one for each thread
constexpr int kTaps = 2 * ops::kMaxCropReduction + 1;
constexpr int kWeightBits = 22;
constexpr int kHalf = 1 << (kWeightBits - 1);

/// The source pixels and weights of a place on one axis of the resized crop.
struct Place {
    int first, count;
    int weight[kTaps];
};
static_assert(sizeof(Place) / sizeof(int) % 2 == 1);  // otherwise the places of a warp share banks

/// The compiler must not fuse these products with the sums that follow: the decoders of the CPU
/// round both.
__device__ inline double product(double a, double b) {
    return fma(a, b, 0.0);
}

__device__ inline double triangle(double x) {
    x = fabs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}

__device__ void weigh(int size, int side, int index, Place& place) {
    const double scale = static_cast<double>(size) / side;
    const double support = fmax(scale, 1.0), inverse = 1.0 / support;
    const double center = product(index + 0.5, scale);
    const int begin = static_cast<int>(center - support + 0.5);
    const int end = static_cast<int>(center + support + 0.5);
    const int first = begin > 0 ? begin : 0, last = end < size ? end : size;
    double sum = 0;
    for (int i = first; i < last; ++i) sum += triangle(product(i - center + 0.5, inverse));
    for (int i = first; i < last; ++i) {
        const double share = triangle(product(i - center + 0.5, inverse)) / sum;
        place.weight[i - first] = static_cast<int>(0.5 + share * (1 << kWeightBits));
    }
    place.first = first;
    place.count = last - first;
}

/// Rounds a sum of bytes times weights to a byte. The weights are not negative, and their sum
/// differs from 1 << kWeightBits by at most kTaps / 2.
__device__ inline int rounded(int sum) {
    return sum >> kWeightBits;
}

/// One block for each tile of a row of the batch; blockIdx.y is the row.
__global__ void crop_resize_kernel(ViewBatch of, int tiles_across) {
    __shared__ Place across[kTileWidth], down[kTileHeight];
    const PictureView view = of.views[blockIdx.y];
    if (view.offset_bytes < 0) return;
    const int left = static_cast<int>(blockIdx.x) % tiles_across * kTileWidth;
    const int top = static_cast<int>(blockIdx.x) / tiles_across * kTileHeight;
    const int thread = static_cast<int>(threadIdx.x);
    if (thread < kTileWidth) {
        if (left + thread < of.side) weigh(view.width, of.side, left + thread, across[thread]);
    } else if (thread < kTileWidth + kTileHeight) {
        const int line = thread - kTileWidth;
        if (top + line < of.side) weigh(view.height, of.side, top + line, down[line]);
    }
    __syncthreads();
    const int x = left + thread % kTileWidth, y = top + thread / kTileWidth;
    if (x >= of.side || y >= of.side) return;

    const Place& columns = across[thread % kTileWidth];
    const Place& lines = down[thread / kTileWidth];
    const std::int64_t stride = std::int64_t{3} * view.picture_width;
    const std::uint8_t* line = of.pictures + view.offset_bytes + (view.top + lines.first) * stride +
                               3 * (view.left + columns.first);
    int sum[3] = {kHalf, kHalf, kHalf};
    for (int j = 0; j < lines.count; ++j, line += stride) {
        int part[3] = {kHalf, kHalf, kHalf};
        for (int i = 0; i < columns.count; ++i) {
            for (int c = 0; c < 3; ++c) part[c] += columns.weight[i] * line[3 * i + c];
        }
        for (int c = 0; c < 3; ++c) sum[c] += lines.weight[j] * rounded(part[c]);
    }
    const std::int64_t to_x = view.flip ? of.side - 1 - x : x;
    const std::int64_t to_y = view.vertical_flip ? of.side - 1 - y : y;
    std::uint8_t* to =
        of.images + ((blockIdx.y * std::int64_t{of.side} + to_y) * of.side + to_x) * 3;
    for (int c = 0; c < 3; ++c) to[c] = static_cast<std::uint8_t>(rounded(sum[c]));
}

}  // namespace

void crop_resize(const ViewBatch& batch, Stream stream) {
    constexpr std::int64_t kMaxRows = 65535, kLargestSide = 1 << 15;
    if (batch.rows < 1 || batch.rows > kMaxRows || batch.side < 1 || batch.side > kLargestSide) {
        fail("crop_resize does not support this number of rows or this side");
    }
    const std::int64_t tiles_across = divide_up(batch.side, kTileWidth);
    const std::int64_t tiles = tiles_across * divide_up(batch.side, kTileHeight);
    launch(crop_resize_kernel,
           {.blocks_x = static_cast<unsigned>(tiles),
            .blocks_y = static_cast<unsigned>(batch.rows),
            .threads = kTileWidth * kTileHeight,
            .stream = stream},
           batch, static_cast<int>(tiles_across));
}

}  // namespace hpcai::kernels
