// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/ops/box_math.hpp>
#include <hpcai/ops/operation.hpp>

namespace hpcai::ops {
namespace {

/// Returns the class of a point among five.
int class_of(const std::vector<float>& boxes, float x, float y) {
    return class_at({boxes.data(), static_cast<std::int64_t>(boxes.size() / 5), 5}, x, y);
}

TEST(CellClass, IsThatOfTheSmallestBoxThatCoversThePoint) {
    const std::vector<float> boxes{0, 0, 40, 40, 1,  //
                                   8, 8, 24, 24, 2,  //
                                   0, 0, 32, 32, 3};
    EXPECT_EQ(class_of(boxes, 12, 12), 2);
    EXPECT_EQ(class_of(boxes, 4, 4), 3);
    EXPECT_EQ(class_of(boxes, 36, 4), 1);
    EXPECT_EQ(class_of(boxes, 44, 4), 0);
}

TEST(CellClass, OfEqualBoxesIsTheFirstOnes) {
    EXPECT_EQ(class_of({0, 0, 8, 8, 4, 0, 0, 8, 8, 2}, 1, 1), 4);
}

TEST(CellClass, HasBoxesThatBeginWithTheirPixelsAndEndBeforeTheNext) {
    const std::vector<float> box{8, 16, 24, 32, 1};
    EXPECT_EQ(class_of(box, 8, 16), 1);
    EXPECT_EQ(class_of(box, 24, 16), 0);
    EXPECT_EQ(class_of(box, 8, 32), 0);
}

TEST(CellClass, TakesRowsWithoutAClassOfTheModelForNoBox) {
    EXPECT_EQ(class_of({0, 0, 8, 8, 0}, 1, 1), 0);
    EXPECT_EQ(class_of({0, 0, 8, 8, 5}, 1, 1), 0);
    EXPECT_EQ(class_of({0, 0, 8, 8, -1}, 1, 1), 0);
    EXPECT_EQ(class_of({0, 0, 8, 8, NAN}, 1, 1), 0);
    EXPECT_EQ(class_of({0, 0, NAN, 8, 1}, 1, 1), 0);
}

TEST(CellClass, IsTakenAtTheCentreOfTheCell) {
    const std::vector<float> box{4, 4, 12, 12, 2};  // covers the centre of the first cell only
    EXPECT_EQ(cell_class({box.data(), 1, 5}, 8, 0, 0), 2);
    EXPECT_EQ(cell_class({box.data(), 1, 5}, 8, 0, 1), 0);
    EXPECT_EQ(cell_class({box.data(), 1, 5}, 8, 1, 0), 0);
}

TEST(CellCrossEntropy, GivesASoftmaxOfEachCell) {
    const CellCrossEntropy loss{.input = {2, 3, 4, 5}, .boxes = {2, 6, 5}};
    EXPECT_EQ(output_shape(loss), (Shape{2, 12, 5}));
    EXPECT_EQ(output_dtype(loss), tensor::DType::f32);
    EXPECT_TRUE(is_loss(loss));
    EXPECT_TRUE(outputs_softmax(loss));
    EXPECT_EQ(input_shapes(loss), (std::vector<Shape>{{2, 3, 4, 5}, {2, 6, 5}}));
}

TEST(CellCrossEntropy, IsRejectedForBoxesOfAnotherBatchOrForm) {
    EXPECT_THROW(output_shape(CellCrossEntropy{{2, 3, 4, 5}, {3, 6, 5}}), Error);
    EXPECT_THROW(output_shape(CellCrossEntropy{{2, 3, 4, 5}, {2, 6, 4}}), Error);
    EXPECT_THROW(output_shape(CellCrossEntropy{{2, 12, 5}, {2, 6, 5}}), Error);
}

}  // namespace
}  // namespace hpcai::ops
