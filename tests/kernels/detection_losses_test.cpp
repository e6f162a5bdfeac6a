// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>

#include "kernels/detection_cases.hpp"
#include "kernels/reference/roi_align.hpp"
#include "kernels/reference/roi_loss.hpp"
#include "kernels/reference/rpn_loss.hpp"

/// The features of regions and the losses of detection, compared with naive references.
namespace hpcai::kernels {
namespace {

class RegionKernels : public ForEachDtype {
protected:
    Contents contents_{60};

    RoiAlignShape shape(int regions, int channels, int pooled, int ratio) const {
        RoiAlignShape shape{.dtype = GetParam(),
                            .images = 2,
                            .regions = regions,
                            .region_columns = 5,
                            .channels = channels,
                            .stored_channels = channels == 3 ? 4 : channels,
                            .pooled = pooled,
                            .sampling_ratio = ratio};
        for (int level = 0; level < RoiAlignShape::kLevels; ++level) {
            shape.height[level] = 36 >> level;
            shape.width[level] = 53 >> level;
        }
        return shape;
    }
    /// Returns regions on all levels; some are partly outside the image, and some are unused.
    Buffer regions(const RoiAlignShape& shape) {
        const std::int64_t rows = std::int64_t{shape.images} * shape.regions;
        Buffer boxes = random_boxes(contents_, rows, 5, {150, 220}, 2);
        for (std::int64_t row = 0; row < rows; ++row) {
            for (int i = 0; i < 4; ++i) {
                const double scale = row % 4 == 0 ? 6 : row % 4 == 1 ? 2.5 : 0.7;
                boxes.set(row * 5 + i, boxes[row * 5 + i] * scale - 20);
            }
            if (row % 7 == 5) boxes.set(row * 5 + 4, -1);
            if (row % 11 == 6) boxes.set(row * 5 + row % 4, row % 2 == 0 ? NAN : HUGE_VAL);
        }
        return boxes;
    }
    void compare(const RoiAlignShape& shape) {
        Buffer boxes = regions(shape);
        const std::int64_t rows = std::int64_t{shape.images} * shape.regions;
        const std::int64_t outputs = rows * shape.pooled * shape.pooled * shape.channels;
        std::vector<Buffer> pyramid;
        RoiAlignArguments of{.regions = boxes.as<float>()};
        for (int level = 0; level < RoiAlignShape::kLevels; ++level) {
            pyramid.push_back(
                contents_.normal(GetParam(), std::int64_t{shape.images} * shape.height[level] *
                                                 shape.width[level] * shape.stored_channels));
        }
        for (std::size_t level = 0; level < pyramid.size(); ++level) {
            of.pyramid[level] = pyramid[level].data();
        }
        Buffer y(GetParam(), outputs), twin_y = y;
        Buffer grids(DType::u8, rows * static_cast<std::int64_t>(sizeof(BinGrid)));
        Buffer twin_grids = grids;
        of.output = y.data();
        of.grids = grids.as<BinGrid>();
        roi_align(shape, of, nullptr);
        of.output = twin_y.data();
        of.grids = twin_grids.as<BinGrid>();
        reference::roi_align(shape, of, nullptr);
        EXPECT_TRUE(near(y, twin_y, of_neighbours()));
        EXPECT_TRUE(same(grids, twin_grids));
        compare_gradients(shape, grids, contents_.normal(GetParam(), outputs));
    }

private:
    /// Returns the tolerance of sums that differ in fp32 and may round to adjacent numbers.
    static double of_neighbours() { return 2 * tolerance_of(GetParam()); }

    /// Compares sums of up to some hundred terms; the second level's gradient is not wanted.
    static void compare_gradients(const RoiAlignShape& shape, Buffer& grids, const Buffer& dy) {
        std::vector<Buffer> dx, twin_dx;
        for (int level = 0; level < RoiAlignShape::kLevels; ++level) {
            dx.emplace_back(GetParam(), std::int64_t{shape.images} * shape.height[level] *
                                            shape.width[level] * shape.stored_channels);
            twin_dx.push_back(dx.back());
        }
        RoiAlignGradientArguments of{.grids = grids.as<BinGrid>(), .dy = dy.data()};
        RoiAlignGradientArguments twin = of;
        for (std::size_t level : {0, 2, 3}) {
            of.dx[level] = dx[level].data();
            twin.dx[level] = twin_dx[level].data();
        }
        roi_align_gradient(shape, of, nullptr);
        reference::roi_align_gradient(shape, twin, nullptr);
        for (std::size_t level = 0; level < dx.size(); ++level) {
            if (level == 1) {
                EXPECT_TRUE(same(dx[level], twin_dx[level]));
            } else {
                EXPECT_TRUE(near(dx[level], twin_dx[level], 1e-5 + of_neighbours())) << level;
            }
        }
    }
};

TEST_P(RegionKernels, AgreeWithTheirTwins) {
    compare(shape(40, 16, 7, 2));
    compare(shape(12, 3, 7, 2));
    compare(shape(9, 300, 3, 1));
    compare(shape(9, 5, 16, 4));
}

TEST_P(RegionKernels, AgreeWithTheirTwinsWhereRegionsAreMany) {
    compare(shape(600, 8, 2, 2));
}

TEST_P(RegionKernels, OfUnusedRegionsAreZeros) {
    RoiAlignShape all = shape(5, 8, 2, 2);
    std::vector<BinGrid> grids(10, BinGrid{-1, 0, 0, 0, 0});
    const Buffer dy = contents_.normal(GetParam(), std::int64_t{10} * 2 * 2 * 8);
    Buffer dx(GetParam(), std::int64_t{2} * 36 * 53 * 8);
    RoiAlignGradientArguments of{.grids = grids.data(), .dy = dy.data()};
    of.dx[0] = dx.data();
    roi_align_gradient(all, of, nullptr);
    for (std::int64_t i = 0; i < dx.count(); ++i) ASSERT_EQ(dx[i], 0);
}

TEST_P(RegionKernels, RejectSizesThatTheyHaveNoRoomFor) {
    EXPECT_THROW(roi_align(shape(5, 8, 17, 1), {}, nullptr), Error);
    EXPECT_THROW(roi_align_gradient(shape(5, 8, 16, 5), {}, nullptr), Error);
}

class DetectionLosses : public ForEachDtype {
protected:
    Contents contents_{61};
    float loss_scale_ = 8;
};

TEST_P(DetectionLosses, OfAnchorsAgreeWithTheirTwins) {
    const AnchorGrid grid = small_grid(16, 24, 3);
    for (const int samples : {1, 40, 500}) {
        RpnOutputs rpn{.dtype = GetParam(), .logit_stride = 4, .delta_stride = 12};
        std::vector<Buffer> values, gradients;
        for (int level = 0; level < 3; ++level) {
            const std::int64_t pixels = 2 * grid.count_of(level) / 3;
            values.push_back(contents_.normal(GetParam(), pixels * 4));
            values.push_back(contents_.normal(GetParam(), pixels * 12));
            for (const std::size_t which : {2, 1}) {
                gradients.emplace_back(GetParam(), values[values.size() - which].count());
            }
        }
        std::vector<Buffer> twins = gradients;
        Buffer targets = contents_.normal(DType::f32, std::int64_t{2} * samples * 6);
        for (std::int64_t row = 0; row < 2 * samples; ++row) {
            targets.set(row * 6, row % 5 == 4 ? -1 : static_cast<double>(row % samples * 3));
            targets.set(row * 6 + 1, row % 3 == 0 ? 1 : 0);
        }
        Buffer losses(DType::f32, 4), twin_losses(DType::f32, 4);
        RpnLossGradientArguments of{.targets = targets.as<float>(), .loss_scale = &loss_scale_};
        RpnLossGradientArguments twin = of;
        for (std::size_t level = 0; level < 3; ++level) {
            rpn.logits[level] = values[2 * level].data();
            rpn.deltas[level] = values[2 * level + 1].data();
            of.logits[level] = gradients[2 * level].data();
            of.deltas[level] = gradients[2 * level + 1].data();
            twin.logits[level] = twins[2 * level].data();
            twin.deltas[level] = twins[2 * level + 1].data();
        }
        of.rpn = twin.rpn = rpn;
        const RpnLossShape shape{grid, 2, samples};
        rpn_loss(shape, {rpn, targets.as<float>(), losses.as<float>()}, nullptr);
        reference::rpn_loss(shape, {rpn, targets.as<float>(), twin_losses.as<float>()}, nullptr);
        EXPECT_TRUE(near(losses, twin_losses, 1e-6));
        rpn_loss_gradient(shape, of, nullptr);
        reference::rpn_loss_gradient(shape, twin, nullptr);
        for (std::size_t i = 0; i < gradients.size(); ++i) {
            EXPECT_TRUE(near(gradients[i], twins[i], tolerance_of(GetParam()))) << i;
        }
    }
}

TEST_P(DetectionLosses, OfRegionsAgreeWithTheirTwins) {
    for (const auto& [samples, classes] :
         std::vector<std::array<int, 2>>{{1, 2}, {20, 5}, {300, 91}}) {
        const std::int64_t rows = 2 * samples;
        const Buffer logits = contents_.normal(DType::f32, rows * classes);
        const Buffer deltas = contents_.normal(DType::f32, rows * classes * 4);
        Buffer targets = contents_.normal(DType::f32, rows * 9);
        for (std::int64_t row = 0; row < rows; ++row) {
            targets.set(row * 9 + 4, static_cast<double>(row * 7 % (classes + 2)) - 1);
        }
        Buffer losses(DType::f32, 4), twin_losses(DType::f32, 4);
        Buffer dx(GetParam(), logits.count()), twin_dx = dx;
        Buffer dd(GetParam(), deltas.count()), twin_dd = dd;
        const RoiLossShape shape{2, samples, classes};
        RoiLossArguments of{static_cast<const float*>(logits.data()),
                            static_cast<const float*>(deltas.data()),
                            targets.as<float>(),
                            losses.as<float>(),
                            &loss_scale_,
                            GetParam(),
                            dx.data(),
                            dd.data()};
        RoiLossArguments twin = of;
        twin.losses = twin_losses.as<float>();
        twin.logit_gradients = twin_dx.data();
        twin.delta_gradients = twin_dd.data();
        roi_loss(shape, of, nullptr);
        roi_loss_gradient(shape, of, nullptr);
        reference::roi_loss(shape, twin, nullptr);
        reference::roi_loss_gradient(shape, twin, nullptr);
        EXPECT_TRUE(near(losses, twin_losses, 1e-6));
        EXPECT_TRUE(near(dx, twin_dx, tolerance_of(GetParam())));
        EXPECT_TRUE(near(dd, twin_dd, tolerance_of(GetParam())));
    }
}

INSTANTIATE_TEST_SUITE_P(, RegionKernels, testing::ValuesIn(kComputeDtypes), dtype_name);
INSTANTIATE_TEST_SUITE_P(, DetectionLosses, testing::ValuesIn(kComputeDtypes), dtype_name);

}  // namespace
}  // namespace hpcai::kernels
