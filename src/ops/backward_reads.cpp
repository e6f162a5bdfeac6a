// SPDX-License-Identifier: Apache-2.0
#include <hpcai/ops/backward_reads.hpp>

namespace hpcai::ops {
namespace {

struct ReadsOf {
    BackwardReads operator()(const Convolution&) const { return {.inputs = true}; }
    BackwardReads operator()(const NormConvolution&) const { return {.inputs = true}; }
    BackwardReads operator()(const DualNorm&) const { return {.inputs = true}; }
    BackwardReads operator()(const GroupNorm&) const { return {.inputs = true}; }
    BackwardReads operator()(const BatchNorm& op) const {
        if (op.frozen) return {.output = op.relu};
        return {.inputs = true, .output = op.add};
    }
    BackwardReads operator()(const Bias& op) const { return {.output = op.relu}; }
    BackwardReads operator()(const Relu&) const { return {.output = true}; }
    BackwardReads operator()(const Linear& op) const { return {.inputs = true, .output = op.relu}; }
    BackwardReads operator()(const RpnLoss&) const { return {.inputs = true}; }
    BackwardReads operator()(const RoiLoss&) const { return {.inputs = true}; }
    // The labels or the boxes.
    BackwardReads operator()(const SoftmaxCrossEntropy&) const {
        return {.inputs = true, .output = true};
    }
    BackwardReads operator()(const CellCrossEntropy&) const {
        return {.inputs = true, .output = true};
    }
    template <typename Other>
    BackwardReads operator()(const Other&) const {
        return {};
    }
};

}  // namespace

BackwardReads backward_reads(const Operation& operation) {
    return std::visit(ReadsOf{}, operation);
}

}  // namespace hpcai::ops
