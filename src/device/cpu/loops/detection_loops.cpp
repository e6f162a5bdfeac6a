// SPDX-License-Identifier: Apache-2.0
// Compiled once per instruction set, without fused multiply-adds, so that the overlap of boxes has
// the same bits on every processor (hpcai/ops/box_math.hpp).
#include <utility>

#include "loops.hpp"

namespace hpcai::device::cpu::HPCAI_ISA {

#include "vector.hpp"

namespace {

template <int Lanes, typename T>
void upsample_add_loop(const Tile& tile, const UpsampleRow& task) {
    const T* x = static_cast<const T*>(task.x);
    const T* coarse = static_cast<const T*>(task.coarse);
    T* y = static_cast<T*>(task.y);
    for (std::int64_t pixel = 0; pixel < tile.pixels; ++pixel) {
        const std::int64_t at = pixel * tile.stride;
        store<Lanes>(y + at,
                     load<Lanes>(x + at) + load<Lanes>(coarse + task.column[pixel] * tile.stride));
    }
}

template <int Lanes, typename T>
void downsample_sum_loop(const Tile& tile, const DownsampleRow& task) {
    const T* dy0 = static_cast<const T*>(task.dy0);
    const T* dy1 = static_cast<const T*>(task.dy1);
    T* dz = static_cast<T*>(task.dz);
    for (std::int64_t pixel = 0; pixel < tile.pixels; ++pixel) {
        Floats<Lanes> sum = {};
        for (std::int64_t row = 0; row < task.rows; ++row) {
            for (std::int64_t column = task.first_column[pixel];
                 column < task.first_column[pixel + 1]; ++column) {
                const std::int64_t at = (row * task.width + column) * tile.stride;
                sum += load<Lanes>(dy0 + at);
                if (dy1 != nullptr) sum += load<Lanes>(dy1 + at);
            }
        }
        store<Lanes>(dz + pixel * tile.stride, sum);
    }
}

template <int Lanes, typename T>
void gather_region_loop(const Tile& tile, const T* x, const RegionBins& region, float* bins) {
    const int samples = region.samples;
    const float weight = 1.0f / static_cast<float>(samples * samples);
    for (int bin_row = 0; bin_row < region.pooled; ++bin_row) {
        for (int bin_column = 0; bin_column < region.pooled; ++bin_column) {
            Floats<Lanes> sum = {};
            for (int i = 0; i < samples; ++i) {
                const AxisSample& row = region.rows[bin_row * samples + i];
                const T* low = x + row.low * region.width * tile.stride;
                const T* high = x + row.high * region.width * tile.stride;
                for (int j = 0; j < samples; ++j) {
                    const AxisSample& column = region.columns[bin_column * samples + j];
                    const std::int64_t left = column.low * tile.stride;
                    const std::int64_t right = column.high * tile.stride;
                    sum += row.low_weight * column.low_weight * load<Lanes>(low + left) +
                           row.low_weight * column.high_weight * load<Lanes>(low + right) +
                           row.high_weight * column.low_weight * load<Lanes>(high + left) +
                           row.high_weight * column.high_weight * load<Lanes>(high + right);
                }
            }
            store<Lanes>(bins + (bin_row * region.pooled + bin_column) * Lanes, sum * weight);
        }
    }
}

template <int Lanes>
inline void add_to(float* to, Floats<Lanes> values) {
    store<Lanes>(to, load<Lanes>(to) + values);
}

template <int Lanes>
void scatter_region_loop(const Tile& tile, const float* bins, const RegionBins& region, float* dx) {
    const int samples = region.samples;
    const float weight = 1.0f / static_cast<float>(samples * samples);
    for (int bin_row = 0; bin_row < region.pooled; ++bin_row) {
        for (int bin_column = 0; bin_column < region.pooled; ++bin_column) {
            const Floats<Lanes> g =
                weight * load<Lanes>(bins + (bin_row * region.pooled + bin_column) * Lanes);
            for (int i = 0; i < samples; ++i) {
                const AxisSample& row = region.rows[bin_row * samples + i];
                float* low = dx + row.low * region.width * tile.stride;
                float* high = dx + row.high * region.width * tile.stride;
                for (int j = 0; j < samples; ++j) {
                    const AxisSample& column = region.columns[bin_column * samples + j];
                    const std::int64_t left = column.low * tile.stride;
                    const std::int64_t right = column.high * tile.stride;
                    add_to<Lanes>(low + left, row.low_weight * column.low_weight * g);
                    add_to<Lanes>(low + right, row.low_weight * column.high_weight * g);
                    add_to<Lanes>(high + left, row.high_weight * column.low_weight * g);
                    add_to<Lanes>(high + right, row.high_weight * column.high_weight * g);
                }
            }
        }
    }
}

/// Returns whether one of `Lanes` boxes, beginning with `first`, overlaps `box` above box.max_iou.
template <int Lanes>
inline bool any_overlaps(const BoxColumns& boxes, std::int64_t first, const ReferenceBox& box) {
    using F = Floats<Lanes>;
    const F zero = {};
    const F x1 = load<Lanes>(boxes.x1 + first), y1 = load<Lanes>(boxes.y1 + first);
    const F x2 = load<Lanes>(boxes.x2 + first), y2 = load<Lanes>(boxes.y2 + first);
    const F left = x1 > box.x1 ? x1 : zero + box.x1, right = x2 < box.x2 ? x2 : zero + box.x2;
    const F top = y1 > box.y1 ? y1 : zero + box.y1, bottom = y2 < box.y2 ? y2 : zero + box.y2;
    const F width = right - left, height = bottom - top;
    const F shared = (width > 0.0f ? width : zero) * (height > 0.0f ? height : zero);
    const F iou = shared / (load<Lanes>(boxes.area + first) + box.area - shared);
    const auto above = iou > box.max_iou;
    bool any = false;
    for (int lane = 0; lane < Lanes; ++lane) any |= above[lane] != 0;
    return any;
}

void upsample_add(const Tile& tile, const UpsampleRow& task) {
    with_type(tile, [&]<int Lanes, typename T>() { upsample_add_loop<Lanes, T>(tile, task); });
}

void downsample_sum(const Tile& tile, const DownsampleRow& task) {
    with_type(tile, [&]<int Lanes, typename T>() { downsample_sum_loop<Lanes, T>(tile, task); });
}

void gather_region(const Tile& tile, const void* x, const RegionBins& region, float* bins) {
    with_type(tile, [&]<int Lanes, typename T>() {
        gather_region_loop<Lanes, T>(tile, static_cast<const T*>(x), region, bins);
    });
}

void scatter_region(const Tile& tile, const float* bins, const RegionBins& region, float* dx) {
    if (tile.lanes == 16) return scatter_region_loop<16>(tile, bins, region, dx);
    if (tile.lanes == 8) return scatter_region_loop<8>(tile, bins, region, dx);
    scatter_region_loop<1>(tile, bins, region, dx);
}

bool overlaps(const BoxColumns& boxes, std::int64_t count, const ReferenceBox& box) {
    std::int64_t first = 0;
    for (; first + 16 <= count; first += 16) {
        if (any_overlaps<16>(boxes, first, box)) return true;
    }
    for (; first < count; ++first) {
        if (any_overlaps<1>(boxes, first, box)) return true;
    }
    return false;
}

}  // namespace

void set_detection_loops(SimdKernels& table) {
    table.upsample_add = upsample_add;
    table.downsample_sum = downsample_sum;
    table.gather_region = gather_region;
    table.scatter_region = scatter_region;
    table.overlaps = overlaps;
}

}  // namespace hpcai::device::cpu::HPCAI_ISA
