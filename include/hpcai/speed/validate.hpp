// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/base/log.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/records/record_fields.hpp>

namespace hpcai::speed {

/// One tensor that a pass computes, compared with the naive loops. Errors are relative: the largest
/// to the largest number of the naive tensor, the others to the norm of the naive tensor.
struct TensorCheck {
    std::string tensor;               // "output", "input_gradient 0", ...
    std::vector<std::int64_t> shape;  // (N, H, W, C), (N, C), (K, R, S, C) or (C)
    std::vector<std::int64_t> place;  // index of the largest error
    double computed = 0;              // at that place; NaN: never written
    double expected = 0;
    Quantity largest_error;  // null: not a finite number
    Quantity l1_error;
    Quantity l2_error;
    double tolerance = 0;  // of largest_error
    bool passed = false;
    HPCAI_RECORD(TensorCheck, tensor, shape, place, computed, expected, largest_error, l1_error,
                 l2_error, tolerance, passed);

    /// The largest error in units of the tolerance; infinite if it is not a finite number.
    double severity() const;
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
    std::string node;           // the first node with this operation and shape
    int nodes = 1;              // number of such nodes
    double gradient_error = 0;  // of the naive gradients, against a central difference
    bool bits_are_equal = false;
    bool writes_past_end = false;  // of a tensor
    bool passed = false;
    std::vector<PassCheck> passes;
    HPCAI_RECORD(OperationCheck, operation, shape, node, nodes, gradient_error, bits_are_equal,
                 writes_past_end, passed, passes);
};

struct ValidateReport {
    std::string schema = "hpcai500-validate/1";
    int level = 0;
    std::string device;
    std::string model;
    std::string precision;
    std::int64_t batch_size = 0;             // of the checked operations
    std::int64_t configured_batch_size = 0;  // training.batch_size
    std::int64_t image_size = 0;             // height in pixels
    std::int64_t image_width = 0;            // in pixels
    int runs = 0;                            // for each time
    int compared_runs = 0;                   // whose bits are compared
    double gradient_tolerance = 0;           // of OperationCheck::gradient_error
    std::vector<OperationCheck> operations;
    std::vector<std::string> unchecked;  // those without naive::has_random_problem()
    double seconds = 0;                  // of the whole command
    bool passed = false;
    HPCAI_RECORD(ValidateReport, schema, level, device, model, precision, batch_size,
                 configured_batch_size, image_size, image_width, runs, compared_runs,
                 gradient_tolerance, operations, unchecked, seconds, passed);
};

struct ValidateRequest {
    int runs = 30;       // for each time
    bool quick = false;  // a smaller batch
};

/// Compares each distinct operation of the configured model's training step, fused as in training,
/// with naive loops in double, on one rank and the configured device and precision. Reduces the
/// batch if the naive loops would take minutes. Logs its progress. Throws the device's errors.
ValidateReport run_validate(const config::Config& config, const ValidateRequest& request,
                            Logger& log);

/// Returns a table with one line for each pass, and last one line "VALIDATE PASSED ..." or
/// "VALIDATE FAILED ..." with operation, pass and place of the worst error.
std::string validate_text(const ValidateReport& report);
std::string validate_json(const ValidateReport& report);

}  // namespace hpcai::speed
