// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <hpcai/ops/flops.hpp>
#include <hpcai/ops/operation.hpp>
#include <hpcai/reference/naive_ops.hpp>

#include "support/counting_oracle.hpp"
#include "support/largest_error.hpp"

namespace hpcai::ops {
namespace {

/// Shapes with and without padding, with strides that fit or do not fit, more rows than columns,
/// single pixels and channels, batches.
std::vector<Operation> operations() {
    const Shape image{2, 8, 6, 4};
    std::vector<Operation> all{Linear{{1, 2048}, 1000},
                               Linear{{3, 5}, 7},
                               Linear{{1, 1}, 1},
                               BatchNorm{.input = image},
                               BatchNorm{.input = {1, 7, 5, 3}},
                               Relu{image},
                               Add{image},
                               MaxPool{image, 2, 2, 0},
                               MaxPool{{1, 16, 8, 3}, 3, 2, 1},
                               MaxPool{{3, 9, 6, 1}, 3, 3, 0},
                               GlobalAveragePool{image},
                               GlobalAveragePool{{5, 1, 1, 7}},
                               SoftmaxCrossEntropy{{3, 5}},
                               SoftmaxCrossEntropy{{1, 1000}},
                               CellCrossEntropy{{2, 3, 4, 5}, {2, 6, 5}},
                               InputNormalize{{1, 8, 6, 3}, {}, {}}};
    for (const Convolution& convolution : std::vector<Convolution>{{image, 16, 3, 2, 1},
                                                                   {image, 16, 3, 1, 1},
                                                                   {image, 5, 1, 1, 0},
                                                                   {image, 5, 1, 2, 0},
                                                                   {{1, 15, 11, 3}, 8, 7, 2, 3},
                                                                   {{1, 9, 7, 2}, 3, 3, 3, 0},
                                                                   {{3, 5, 5, 1}, 1, 5, 1, 0},
                                                                   {{1, 1, 1, 6}, 2, 3, 1, 1},
                                                                   {{2, 6, 10, 3}, 4, 5, 4, 2}}) {
        all.emplace_back(convolution);
    }
    return all;
}

double difference(const Flops& a, const Flops& b) {
    return static_cast<double>(
        std::max({std::abs(a.forward - b.forward), std::abs(a.weight_gradient - b.weight_gradient),
                  std::abs(a.input_gradient - b.input_gradient)}));
}

TEST(Flops, AreWhatWalkingTheLoopsOfNaiveOperationsCounts) {
    tests::LargestError error("FLOPs of an operation against counted naive loops", 0);
    for (const LedgerName& ledger : kLedgers) {
        for (const Operation& operation : operations()) {
            for (const bool first_layer : {false, true}) {
                const Flops got = flops(operation, ledger.ledger, first_layer);
                const Flops want = counting::flops(operation, counting::walk(operation),
                                                   ledger.ledger, first_layer);
                error.add(
                    difference(got, want),
                    fmt::format("{}: {} to {}, first layer {}: {} {} {}, counted {} {} {}",
                                ledger.name, name_of(operation), to_string(output_shape(operation)),
                                first_layer, got.forward, got.weight_gradient, got.input_gradient,
                                want.forward, want.weight_gradient, want.input_gradient));
            }
        }
    }
}

/// The products of the padding are part of the convention; the naive convolution of the tests
/// multiplies only those inside the image.
TEST(Flops, OfAConvolutionExceedTheProductsInsideTheImageByThePaddingOnly) {
    for (const Operation& operation : operations()) {
        const auto* convolution = std::get_if<Convolution>(&operation);
        if (convolution == nullptr) continue;
        std::int64_t inside = 0;
        naive::for_each_tap(*convolution, output_shape(operation), [&](auto...) {
            inside += convolution->filters * convolution->input[3];
        });
        const std::int64_t counted = flops(operation, Ledger::two_mac, false).forward / 2;
        if (convolution->padding == 0) {
            EXPECT_EQ(counted, inside);
        } else {
            EXPECT_GT(counted, inside);
        }
    }
}

}  // namespace
}  // namespace hpcai::ops
