// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/ops/operation.hpp>

namespace hpcai::ops {

/// The counting rules for FLOPs (docs/METRICS.md).
enum class Ledger { table3, two_mac, aiperf };

struct LedgerName {
    Ledger ledger;
    std::string_view name;
};
inline constexpr std::array kLedgers{LedgerName{Ledger::table3, "table3"},
                                     LedgerName{Ledger::two_mac, "two_mac"},
                                     LedgerName{Ledger::aiperf, "aiperf"}};

/// FLOPs of one operation on its batch, by pass. table3 does not define the backward pass of single
/// operations: its training count is 3 x forward, so each gradient counts as many FLOPs as forward.
struct Flops {
    std::int64_t forward = 0;
    std::int64_t weight_gradient = 0;
    std::int64_t input_gradient = 0;

    std::int64_t training() const { return forward + weight_gradient + input_gradient; }
    Flops& operator+=(const Flops& other) {
        forward += other.forward;
        weight_gradient += other.weight_gradient;
        input_gradient += other.input_gradient;
        return *this;
    }
};

/// Returns the FLOPs of the operation. `first_layer` excludes the input gradient except in table3.
Flops flops(const Operation& operation, Ledger ledger, bool first_layer);

}  // namespace hpcai::ops
