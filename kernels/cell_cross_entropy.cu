// SPDX-License-Identifier: Apache-2.0
#include <hpcai/ops/box_math.hpp>

#include "cross_entropy.hpp"
#include "elements.cuh"
#include "reduce.cuh"

namespace hpcai::kernels {
namespace {

constexpr int kThreads = 256;

__device__ int label_of(const CellGrid& grid, const float* boxes, std::int64_t image,
                        std::int64_t pixel) {
    return ops::cell_class({boxes + image * grid.boxes * 5, grid.boxes, grid.classes}, grid.stride,
                           pixel / grid.width, pixel % grid.width);
}

__device__ double weight_of(const CellGrid& grid, int label) {
    return label == 0 ? grid.background_weight : 1;
}

/// One block for each image; each thread computes one cell at a time.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    cell_kernel(const CellGrid grid, const CellCrossEntropyArguments args) {
    const std::int64_t image = blockIdx.x, cells = grid.height * grid.width;
    double total = 0;
    for (std::int64_t pixel = threadIdx.x; pixel < cells; pixel += kThreads) {
        const std::int64_t index = image * cells + pixel;
        const T* logits = static_cast<const T*>(args.logits) + index * grid.padded_classes;
        float* softmax = args.probabilities + index * grid.classes;
        double highest = to_float(logits[0]), sum = 0;
        for (int k = 1; k < grid.classes; ++k) {
            highest = Maximum{}(static_cast<double>(to_float(logits[k])), highest);
        }
        for (int k = 0; k < grid.classes; ++k) {
            const double power = exp(to_float(logits[k]) - highest);
            softmax[k] = static_cast<float>(power);
            sum += power;
        }
        for (int k = 0; k < grid.classes; ++k) softmax[k] = static_cast<float>(softmax[k] / sum);
        const int label = label_of(grid, args.boxes, image, pixel);
        total += weight_of(grid, label) * (log(sum) + highest - to_float(logits[label]));
    }
    total = reduce_block(total, 0.0, Sum{});
    if (threadIdx.x == 0)
        args.losses[image] = static_cast<float>(total / static_cast<double>(cells));
}

template <typename T>
__global__ void cell_gradient_kernel(const CellGrid grid,
                                     const CellCrossEntropyGradientArguments args) {
    const std::int64_t cells = grid.height * grid.width;
    const double mean_scale = *args.loss_scale / static_cast<double>(cells);
    for (std::int64_t index = first_item(); index < grid.images * cells; index += item_stride()) {
        const int label = label_of(grid, args.boxes, index / cells, index % cells);
        const double scale = mean_scale * weight_of(grid, label);
        const float* softmax = args.probabilities + index * grid.classes;
        T* gradient = static_cast<T*>(args.gradient) + index * grid.padded_classes;
        for (int k = 0; k < grid.padded_classes; ++k) {
            const double slope =
                k < grid.classes ? static_cast<double>(softmax[k]) - (k == label ? 1 : 0) : 0;
            gradient[k] = from_float<T>(static_cast<float>(scale * slope));
        }
    }
}

void check(const CellGrid& grid) {
    if (grid.images < 1 || grid.images > 0x7fffffff || grid.height < 1 || grid.width < 1 ||
        grid.classes < 1) {
        fail("cell_cross_entropy: the sizes are outside the limits of CellGrid");
    }
}

}  // namespace

void cell_cross_entropy(const CellGrid& grid, const CellCrossEntropyArguments& arguments,
                        Stream stream) {
    check(grid);
    with_type(grid.dtype, [&]<typename T>() {
        launch(
            cell_kernel<T>,
            {.blocks_x = static_cast<unsigned>(grid.images), .threads = kThreads, .stream = stream},
            grid, arguments);
    });
}

void cell_cross_entropy_gradient(const CellGrid& grid,
                                 const CellCrossEntropyGradientArguments& arguments,
                                 Stream stream) {
    check(grid);
    with_type(grid.dtype, [&]<typename T>() {
        launch(cell_gradient_kernel<T>, grid_over(grid.images * grid.height * grid.width, stream),
               grid, arguments);
    });
}

}  // namespace hpcai::kernels
