// SPDX-License-Identifier: Apache-2.0
#include <array>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/tensor/tensor_view.hpp>

namespace hpcai::tensor {
namespace {

TEST(Shape, MultipliesItsExtents) {
    EXPECT_EQ(Shape{}.elements(), 1);
    EXPECT_EQ((Shape{7}.elements()), 7);
    EXPECT_EQ((Shape{2, 3, 4, 5, 6}.elements()), 720);
    EXPECT_EQ((Shape{2, 0, 4}.elements()), 0);
    EXPECT_EQ((Shape{100'000, 100'000}.elements()), 10'000'000'000);
}

TEST(Shape, DiffersByRankAndByExtents) {
    EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
    EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
    EXPECT_NE((Shape{2, 3}), (Shape{2, 3, 1}));
    EXPECT_NE(Shape{}, Shape{1});
}

TEST(Shape, RejectsMoreThanFiveExtentsAndNegativeOnes) {
    EXPECT_THROW((Shape{1, 1, 1, 1, 1, 1}), Error);
    EXPECT_THROW((Shape{4, -1}), Error);
}

TEST(Shape, PrintsItself) {
    EXPECT_EQ(to_string(Shape{32, 56, 56, 64}), "(32, 56, 56, 64)");
    EXPECT_EQ(to_string(Shape{}), "()");
}

TEST(DType, KnowsItsSizeAndName) {
    EXPECT_EQ(size_of(DType::f32), 4u);
    EXPECT_EQ(size_of(DType::s32), 4u);
    EXPECT_EQ(size_of(DType::bf16), 2u);
    EXPECT_EQ(size_of(DType::f16), 2u);
    EXPECT_EQ(size_of(DType::u8), 1u);
    EXPECT_EQ(name_of(DType::bf16), "bf16");
}

TEST(TensorView, GivesItsElementsInTheirOwnTypeOnly) {
    std::array<float, 6> numbers{1, 2, 3, 4, 5, 6};
    const TensorView view{numbers.data(), {2, 3}, DType::f32};
    EXPECT_EQ(view.bytes(), 24u);
    EXPECT_EQ(view.as<float>().size(), 6u);
    view.as<float>()[5] = 7;
    EXPECT_EQ(numbers[5], 7);
    EXPECT_EQ(view.as<const float>()[0], 1);
    EXPECT_THROW(view.as<std::int32_t>(), Error);
}

}  // namespace
}  // namespace hpcai::tensor
