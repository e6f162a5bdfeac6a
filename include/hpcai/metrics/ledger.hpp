// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/graph/graph.hpp>
#include <hpcai/ops/flops.hpp>

/// The benchmark's metrics: work, time, score. Definitions and sources: docs/METRICS.md.
namespace hpcai::metrics {

/// The rules for counting FLOPs on which the scores are based.
inline constexpr ops::Ledger kOfficialLedger = ops::Ledger::table3;

/// The counts of one node of the graph for one sample.
struct LedgerRow {
    std::string node;
    std::string operation;  // ops::name_of
    tensor::Shape output;   // for a batch of 1
    std::int64_t parameters = 0;
    std::int64_t activation_elements = 0;                  // of the output
    std::array<ops::Flops, ops::kLedgers.size()> flops{};  // in the order of ops::kLedgers

    const ops::Flops& flops_in(ops::Ledger ledger) const;
};

/// FLOPs of one sample by node in each of the ledgers (counting conventions), with parameters and
/// activations. Work and FLOPS follow from them.
class FlopsLedger {
public:
    /// Only the constructor uses `graph`. Throws Error(internal) for a batch other than 1 or a
    /// fused BatchNorm.
    explicit FlopsLedger(const graph::Graph& graph);

    const std::vector<LedgerRow>& rows() const { return rows_; }  // in the order of the graph
    /// Sums of all rows; `node`, `operation` and `output` are empty.
    const LedgerRow& total() const { return total_; }

    /// FLOPs of the forward pass for one sample.
    std::int64_t forward_per_sample(ops::Ledger ledger) const {
        return total_.flops_in(ledger).forward;
    }
    /// FLOPs of the forward and both gradient passes for one sample; in table3, 3 x forward.
    std::int64_t training_per_sample(ops::Ledger ledger) const {
        return total_.flops_in(ledger).training();
    }

private:
    std::vector<LedgerRow> rows_;
    LedgerRow total_;
};

/// Returns the bytes that a node reads and writes in one pass if caches keep nothing between
/// operations: each tensor once, without padding. This is a lower bound. Filters, weights of linear
/// layers, values without a dtype and gradients of values have the type `compute`. Other parameters
/// and the gradients of all parameters are fp32. The node must have `pass`.
///
///   forward            inputs, parameters, output
///   weight_gradient    inputs, the output's gradient, gradients of the parameters
///   input_gradient     the output's gradient, parameters, the inputs' gradients; also inputs and
///                      output of the forward pass if the operation needs them
///   prepare            each parameter in fp32 and in the type that the forward pass reads
double moved_bytes(const graph::Graph& graph, const graph::Node& node, ops::Pass pass,
                   tensor::DType compute);

}  // namespace hpcai::metrics
