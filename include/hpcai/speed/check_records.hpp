// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <hpcai/records/record_fields.hpp>

namespace hpcai::speed {

/// One tensor that a pass computes, compared with that of the naive loops. The largest error is
/// relative to the naive tensor's largest absolute value, L1 and L2 errors to its L1 and L2 norms.
struct TensorCheck {
    std::string tensor;               // "output", "input_gradient 0", ...
    std::vector<std::int64_t> shape;  // (N, H, W, C), (N, C), (K, R, S, C) or (C)
    std::vector<std::int64_t> place;  // index of the largest error
    Quantity computed;                // at that place; null: not a finite number
    double expected = 0;
    Quantity largest_error;  // null: not a finite number
    Quantity l1_error;
    Quantity l2_error;
    double tolerance = 0;  // limit of largest_error
    bool passed = false;
    HPCAI_RECORD(TensorCheck, tensor, shape, place, computed, expected, largest_error, l1_error,
                 l2_error, tolerance, passed);

    /// The largest error in units of the tolerance; infinite if it is not a finite number.
    double severity() const {
        return largest_error.value ? *largest_error.value / tolerance : HUGE_VAL;
    }
};

/// One pass of an operation: its tensors, and its time on the device.
struct PassCheck {
    std::string pass;
    std::vector<TensorCheck> tensors;
    double median_seconds = 0;
    Quantity low_seconds;  // exact 95 % confidence interval of the median
    Quantity high_seconds;
    HPCAI_RECORD(PassCheck, pass, tensors, median_seconds, low_seconds, high_seconds);
};

/// An operation of the model's graph with one shape.
struct OperationCheck {
    std::string operation;
    std::string shape;
    std::string node;              // the first graph node with this operation and shape
    int nodes = 1;                 // number of such nodes
    double gradient_error = 0;     // of the naive gradients, against a central difference
    bool bits_are_equal = false;   // in all compared runs
    bool writes_past_end = false;  // of a tensor
    bool passed = false;
    std::string failure;  // why there are no passes: the device's error
    std::vector<PassCheck> passes;
    HPCAI_RECORD(OperationCheck, operation, shape, node, nodes, gradient_error, bits_are_equal,
                 writes_past_end, passed, failure, passes);
};

}  // namespace hpcai::speed
