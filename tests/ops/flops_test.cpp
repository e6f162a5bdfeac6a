// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/ops/flops.hpp>
#include <hpcai/ops/operation.hpp>

/// Single operations; the totals of ResNet-50 are in tests/models.
namespace hpcai::ops {
namespace {

void expect_flops(const Operation& operation, Ledger ledger, const Flops& want,
                  bool first_layer = false) {
    const Flops got = flops(operation, ledger, first_layer);
    EXPECT_EQ(got.forward, want.forward) << name_of(operation);
    EXPECT_EQ(got.weight_gradient, want.weight_gradient) << name_of(operation);
    EXPECT_EQ(got.input_gradient, want.input_gradient) << name_of(operation);
}

const Shape kImage{2, 8, 6, 4};  // 384 elements
const std::int64_t kElements = 2 * 8 * 6 * 4;
// 3x3 with stride 2: 4 x 3 positions, 16 filters, 36 taps each
const Convolution kConvolution{kImage, 16, 3, 2, 1};
const std::int64_t kProducts = std::int64_t{2} * 4 * 3 * 16 * 36;

TEST(Table3, CountsOperatorsAsThePaperDoes) {
    expect_flops(kConvolution, Ledger::table3, {2 * kProducts, 2 * kProducts, 2 * kProducts});
    expect_flops(Linear{{3, 5}, 7}, Ledger::table3, {105, 105, 105});
    expect_flops(Relu{kImage}, Ledger::table3, {kElements, kElements, kElements});
    expect_flops(Add{kImage}, Ledger::table3, {kElements, kElements, kElements});
    expect_flops(BatchNorm{.input = kImage}, Ledger::table3, {kElements, kElements, kElements});
    expect_flops(MaxPool{kImage}, Ledger::table3, {kElements, kElements, kElements});
    expect_flops(GlobalAveragePool{kImage}, Ledger::table3, {kElements, kElements, kElements});
    expect_flops(SoftmaxCrossEntropy{{3, 5}}, Ledger::table3, {0, 0, 0});
    expect_flops(InputNormalize{kImage, {}, {}}, Ledger::table3, {0, 0, 0});
}

TEST(Table3, TrainsTheFirstLayerAtThreeTimesForwardToo) {
    EXPECT_EQ(flops(kConvolution, Ledger::table3, true).training(), 6 * kProducts);
}

TEST(TwoMac, CountsProductsOnly) {
    expect_flops(kConvolution, Ledger::two_mac, {2 * kProducts, 2 * kProducts, 2 * kProducts});
    expect_flops(Linear{{3, 5}, 7}, Ledger::two_mac, {210, 210, 210});
    for (const Operation& operation :
         {Operation{Relu{kImage}}, Operation{Add{kImage}}, Operation{BatchNorm{.input = kImage}},
          Operation{MaxPool{kImage}}, Operation{GlobalAveragePool{kImage}},
          Operation{SoftmaxCrossEntropy{{3, 5}}}, Operation{InputNormalize{kImage, {}, {}}}}) {
        expect_flops(operation, Ledger::two_mac, {0, 0, 0});
    }
}

TEST(TwoMac, NeedsNoInputGradientOfTheFirstLayer) {
    expect_flops(kConvolution, Ledger::two_mac, {2 * kProducts, 2 * kProducts, 0}, true);
}

TEST(AiPerf, CountsAsItsProfilerDoes) {
    // K^2 Cin Cout (4 out^2 + 2) backward, per image
    const std::int64_t taps = 36 * 16, pixels = 12;
    const Flops got = flops(kConvolution, Ledger::aiperf, false);
    EXPECT_EQ(got.forward, 2 * 2 * taps * pixels);
    EXPECT_EQ(got.weight_gradient + got.input_gradient, 2 * taps * (4 * pixels + 2));
    const Flops first = flops(kConvolution, Ledger::aiperf, true);
    EXPECT_EQ(first.training() - first.forward, 2 * taps * (2 * pixels + 2));
    const Flops dense = flops(Linear{{3, 5}, 7}, Ledger::aiperf, false);
    EXPECT_EQ(dense.forward, 3 * 2 * 5 * 7);
    EXPECT_EQ(dense.training() - dense.forward, 3 * (4 * 5 * 7 + 2 * (5 + 1) * 7));
    EXPECT_EQ(flops(BatchNorm{.input = kImage}, Ledger::aiperf, false).training(),
              7 * kElements + 2 * 36);
    EXPECT_EQ(flops(Relu{kImage}, Ledger::aiperf, false).training(), kElements);
    EXPECT_EQ(flops(Add{kImage}, Ledger::aiperf, false).training(), kElements);
    EXPECT_EQ(flops(MaxPool{kImage, 3, 2, 1}, Ledger::aiperf, false).training(), kElements * 9 / 4);
    EXPECT_EQ(flops(GlobalAveragePool{kImage}, Ledger::aiperf, false).training(), 2 * 4 * (47 + 4));
    EXPECT_EQ(flops(SoftmaxCrossEntropy{{3, 5}}, Ledger::aiperf, false).training(),
              3 * (8 * 5 + 4 + 4 * 5));
}

TEST(Flops, OfAFusedNormalizationAreThoseOfItsParts) {
    for (const LedgerName& ledger : kLedgers) {
        Flops parts = flops(BatchNorm{.input = kImage}, ledger.ledger, false);
        parts += flops(Add{kImage}, ledger.ledger, false);
        parts += flops(Relu{kImage}, ledger.ledger, false);
        expect_flops(BatchNorm{.input = kImage, .add = true, .relu = true}, ledger.ledger, parts);
    }
}

TEST(Flops, GrowWithTheBatch) {
    for (const LedgerName& ledger : kLedgers) {
        Convolution twice = kConvolution;
        twice.input[0] *= 2;
        EXPECT_EQ(flops(twice, ledger.ledger, false).training(),
                  2 * flops(kConvolution, ledger.ledger, false).training());
    }
}

}  // namespace
}  // namespace hpcai::ops
