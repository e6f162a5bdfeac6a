// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/ops/box_math.hpp>

#include "kernels/buffer.hpp"
#include "kernels/cross_entropy.hpp"
#include "kernels/host_numbers.hpp"

namespace hpcai::kernels {
namespace reference {

inline int label_of(const CellGrid& grid, const float* boxes, std::int64_t index) {
    const std::int64_t cells = grid.height * grid.width;
    const std::int64_t image = index / cells, pixel = index % cells;
    return ops::cell_class({boxes + image * grid.boxes * 5, grid.boxes, grid.classes}, grid.stride,
                           pixel / grid.width, pixel % grid.width);
}

inline double weight_of(const CellGrid& grid, int label) {
    return label == 0 ? grid.background_weight : 1;
}

inline void cell_cross_entropy(const CellGrid& grid, const CellCrossEntropyArguments& arguments,
                               Stream) {
    const std::int64_t cells = grid.height * grid.width;
    std::vector<double> sums(static_cast<std::size_t>(grid.images), 0.0);
    for (std::int64_t index = 0; index < grid.images * cells; ++index) {
        std::vector<double> logits;
        for (int k = 0; k < grid.classes; ++k) {
            logits.push_back(get(grid.dtype, arguments.logits, index * grid.padded_classes + k));
        }
        const double highest = *std::max_element(logits.begin(), logits.end());
        double sum = 0;
        for (const double logit : logits) sum += std::exp(logit - highest);
        for (int k = 0; k < grid.classes; ++k) {
            const double power = std::exp(logits[k] - highest);
            arguments.probabilities[index * grid.classes + k] = static_cast<float>(power / sum);
        }
        const int label = label_of(grid, arguments.boxes, index);
        const double loss = std::log(sum) + highest - logits[label];
        sums[index / cells] += weight_of(grid, label) * loss;
    }
    for (std::int64_t image = 0; image < grid.images; ++image) {
        arguments.losses[image] = static_cast<float>(sums[image] / static_cast<double>(cells));
    }
}

inline void cell_cross_entropy_gradient(const CellGrid& grid,
                                        const CellCrossEntropyGradientArguments& arguments,
                                        Stream) {
    const std::int64_t cells = grid.height * grid.width;
    for (std::int64_t index = 0; index < grid.images * cells; ++index) {
        const int label = label_of(grid, arguments.boxes, index);
        const double scale =
            *arguments.loss_scale * weight_of(grid, label) / static_cast<double>(cells);
        for (int k = 0; k < grid.padded_classes; ++k) {
            const bool is_class = k < grid.classes;
            const double said = is_class ? arguments.probabilities[index * grid.classes + k] : 0;
            put(grid.dtype, arguments.gradient, index * grid.padded_classes + k,
                scale * (said - (k == label ? 1 : 0)));
        }
    }
}

}  // namespace reference

namespace {

std::vector<CellGrid> grids(DType dtype) {
    std::vector<CellGrid> all;
    for (const auto& [height, width] : std::vector<std::array<int, 2>>{{1, 1}, {5, 7}, {24, 36}}) {
        for (const auto& [classes, padded] : std::vector<std::array<int, 2>>{{5, 8}, {16, 16}}) {
            all.push_back({.images = 3,
                           .height = height,
                           .width = width,
                           .stride = 8,
                           .classes = classes,
                           .padded_classes = padded,
                           .boxes = 4,
                           .dtype = dtype,
                           .background_weight = 0.5});
        }
    }
    return all;
}

/// Returns rows of x1, y1, x2, y2, class near the grid's first cells; some have no class.
Buffer boxes_of(const CellGrid& grid, Contents& contents) {
    Buffer boxes = contents.whole(DType::f32, grid.images * grid.boxes * 5, 40);
    const Buffer classes =
        contents.whole(DType::f32, grid.images * grid.boxes, std::uint32_t(grid.classes));
    for (std::int64_t row = 0; row < grid.images * grid.boxes; ++row) {
        for (const int side : {0, 1}) {
            boxes.set(row * 5 + 2 + side, boxes[row * 5 + side] + boxes[row * 5 + 2 + side]);
        }
        boxes.set(row * 5 + 4, classes[row]);
    }
    return boxes;
}

class CellKernels : public ForEachDtype {
protected:
    Contents contents_{61};
};

TEST_P(CellKernels, SoftmaxAndLossesAreTheReferences) {
    for (const CellGrid& grid : grids(GetParam())) {
        const std::int64_t cells = grid.images * grid.height * grid.width;
        const Buffer logits = contents_.normal(GetParam(), cells * grid.padded_classes);
        Buffer boxes = boxes_of(grid, contents_);
        Buffer softmax(DType::f32, cells * grid.classes), losses(DType::f32, grid.images);
        Buffer wanted = softmax, wanted_losses = losses;
        cell_cross_entropy(
            grid, {logits.data(), boxes.as<float>(), softmax.as<float>(), losses.as<float>()},
            nullptr);
        reference::cell_cross_entropy(
            grid, {logits.data(), boxes.as<float>(), wanted.as<float>(), wanted_losses.as<float>()},
            nullptr);
        EXPECT_TRUE(near(softmax, wanted, 1e-6));
        EXPECT_TRUE(near(losses, wanted_losses, 1e-6));
    }
}

TEST_P(CellKernels, GradientsAreTheReferencesAndZeroInThePadding) {
    for (const CellGrid& grid : grids(GetParam())) {
        const std::int64_t cells = grid.images * grid.height * grid.width;
        Buffer softmax = contents_.whole(DType::f32, cells * grid.classes, 2);
        Buffer boxes = boxes_of(grid, contents_);
        Buffer scale(DType::f32, std::vector<double>{0.5});
        Buffer got(GetParam(), cells * grid.padded_classes), wanted = got;
        cell_cross_entropy_gradient(
            grid, {softmax.as<float>(), boxes.as<float>(), scale.as<float>(), got.data()}, nullptr);
        reference::cell_cross_entropy_gradient(
            grid, {softmax.as<float>(), boxes.as<float>(), scale.as<float>(), wanted.data()},
            nullptr);
        EXPECT_TRUE(near(got, wanted, tolerance_of(GetParam())));
        for (std::int64_t i = 0; i < got.count(); ++i) {
            if (i % grid.padded_classes >= grid.classes) {
                ASSERT_EQ(got[i], 0) << i;
            }
        }
    }
}

TEST(CellKernel, RejectsAGridWithoutCells) {
    EXPECT_THROW(cell_cross_entropy({.images = 1, .classes = 2}, {}, nullptr), Error);
}

INSTANTIATE_TEST_SUITE_P(, CellKernels, testing::ValuesIn(kComputeDtypes), dtype_name);

}  // namespace
}  // namespace hpcai::kernels
