// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/ops/operation.hpp>

namespace hpcai::ops {
namespace {

Shape convolved(std::int64_t extent, std::int64_t kernel, std::int64_t stride,
                std::int64_t padding) {
    return output_shape(Convolution{.input = {2, extent, extent + 1, 3},
                                    .filters = 8,
                                    .kernel = kernel,
                                    .stride = stride,
                                    .padding = padding});
}

TEST(OutputShape, OfAConvolutionCountsWindowPositions) {
    EXPECT_EQ(convolved(224, 7, 2, 3), (Shape{2, 112, 113, 8}));
    EXPECT_EQ(convolved(56, 3, 1, 1), (Shape{2, 56, 57, 8}));
    EXPECT_EQ(convolved(7, 3, 2, 1), (Shape{2, 4, 4, 8}));
    EXPECT_EQ(convolved(8, 1, 2, 0), (Shape{2, 4, 5, 8}));
    EXPECT_EQ(convolved(3, 3, 1, 0), (Shape{2, 1, 2, 8}));
    EXPECT_EQ(convolved(1, 7, 2, 3), (Shape{2, 1, 1, 8}));
}

TEST(OutputShape, OfAMaxPoolKeepsTheChannels) {
    EXPECT_EQ(
        output_shape(MaxPool{.input = {2, 112, 112, 64}, .kernel = 3, .stride = 2, .padding = 1}),
        (Shape{2, 56, 56, 64}));
    EXPECT_EQ(output_shape(MaxPool{.input = {1, 5, 4, 3}}), (Shape{1, 2, 2, 3}));
}

TEST(OutputShape, OfTheClassifierHasNoPixels) {
    EXPECT_EQ(output_shape(GlobalAveragePool{{4, 7, 7, 2048}}), (Shape{4, 2048}));
    EXPECT_EQ(output_shape(Linear{{4, 2048}, 1000}), (Shape{4, 1000}));
    EXPECT_EQ(output_shape(SoftmaxCrossEntropy{{4, 1000}}), (Shape{4, 1000}));
}

TEST(OutputShape, OfOtherOperationsIsTheInputs) {
    const Shape image{4, 8, 8, 16};
    EXPECT_EQ(output_shape(InputNormalize{image, {}, {}}), image);
    EXPECT_EQ(output_shape(BatchNorm{.input = image, .statistics_samples = 2}), image);
    EXPECT_EQ(output_shape(Relu{image}), image);
    EXPECT_EQ(output_shape(Add{image}), image);
}

TEST(OutputShape, RejectsAWindowThatDoesNotFit) {
    EXPECT_THROW(convolved(2, 3, 1, 0), Error);
    EXPECT_THROW(convolved(2, 7, 1, 2), Error);
    EXPECT_THROW(output_shape(MaxPool{.input = {1, 1, 8, 4}, .kernel = 2}), Error);
}

TEST(OutputShape, RejectsWindowsWithoutExtentStrideOrPixels) {
    EXPECT_THROW(convolved(8, 0, 1, 0), Error);
    EXPECT_THROW(convolved(8, 3, 0, 1), Error);
    EXPECT_THROW(convolved(8, 3, -1, 1), Error);
    EXPECT_THROW(convolved(8, 3, 1, -1), Error);
    // A window with padding only has no maximum.
    EXPECT_THROW(
        output_shape(MaxPool{.input = {1, 8, 8, 4}, .kernel = 2, .stride = 2, .padding = 2}),
        Error);
}

TEST(OutputShape, RejectsOutputsWithoutChannels) {
    EXPECT_THROW(output_shape(Convolution{.input = {1, 8, 8, 4}, .filters = 0}), Error);
    EXPECT_THROW(output_shape(Convolution{.input = {1, 8, 8, 4}, .filters = -4}), Error);
    EXPECT_THROW(output_shape(Linear{{4, 16}, 0}), Error);
}

TEST(OutputShape, RejectsAnotherRank) {
    EXPECT_THROW(output_shape(Convolution{.input = {8, 8, 4}, .filters = 2}), Error);
    EXPECT_THROW(output_shape(BatchNorm{.input = {8, 4}}), Error);
    EXPECT_THROW(output_shape(MaxPool{.input = {8, 4}}), Error);
    EXPECT_THROW(output_shape(GlobalAveragePool{{8, 4}}), Error);
    EXPECT_THROW(output_shape(InputNormalize{{8, 4}, {}, {}}), Error);
    EXPECT_THROW(output_shape(Linear{{1, 8, 8, 4}, 10}), Error);
    EXPECT_THROW(output_shape(SoftmaxCrossEntropy{{8}}), Error);
}

TEST(OutputShape, RejectsSpansOfStatisticsThatDoNotDivideTheBatch) {
    EXPECT_NO_THROW(output_shape(BatchNorm{.input = {8, 4, 4, 2}, .statistics_samples = 8}));
    EXPECT_THROW(output_shape(BatchNorm{.input = {8, 4, 4, 2}, .statistics_samples = 3}), Error);
    EXPECT_NO_THROW(output_shape(BatchNorm{.input = {8, 4, 4, 2}, .statistics_samples = 16}));
    EXPECT_THROW(output_shape(BatchNorm{.input = {8, 4, 4, 2}, .statistics_samples = 12}), Error);
    EXPECT_THROW(output_shape(BatchNorm{.input = {8, 4, 4, 2}, .statistics_samples = -4}), Error);
}

TEST(OutputShape, OfAFusedOperationIsThatOfItsLastPart) {
    const BatchNorm norm{.input = {2, 8, 6, 4}, .relu = true};
    EXPECT_EQ(output_shape(DualNorm{norm, norm}), norm.input);
    EXPECT_THROW(output_shape(DualNorm{norm, {.input = {2, 8, 6, 5}}}), Error);
    EXPECT_EQ(output_shape(PointwiseNorm{{{2, 8, 6, 3}, 4}, norm}), norm.input);
    EXPECT_THROW(output_shape(PointwiseNorm{{{2, 8, 6, 3}, 5}, norm}), Error);
    EXPECT_EQ(output_shape(NormPool{norm, {norm.input, 3, 2, 1}}), (Shape{2, 4, 3, 4}));
    EXPECT_THROW(output_shape(NormPool{norm, {{2, 8, 6, 5}, 3, 2, 1}}), Error);
}

TEST(CarriesSums, IsTrueForConvolutionsThatFormThem) {
    Convolution convolution{{2, 8, 6, 4}, 16};
    EXPECT_FALSE(outputs_channel_sums(convolution));
    convolution.sums = true;
    EXPECT_TRUE(outputs_channel_sums(convolution));
    EXPECT_FALSE(outputs_channel_sums(BatchNorm{.input = {2, 8, 6, 4}, .from_sums = true}));
}

TEST(NameOf, DistinguishesFusedNormalizations) {
    const Shape image{1, 2, 2, 4};
    EXPECT_EQ(name_of(Operation{Convolution{image, 4}}), "convolution");
    EXPECT_EQ(name_of(Operation{BatchNorm{.input = image}}), "batch_norm");
    EXPECT_EQ(name_of(Operation{BatchNorm{.input = image, .relu = true}}), "batch_norm_relu");
    EXPECT_EQ(name_of(Operation{BatchNorm{.input = image, .add = true, .relu = true}}),
              "batch_norm_add_relu");
}

}  // namespace
}  // namespace hpcai::ops
