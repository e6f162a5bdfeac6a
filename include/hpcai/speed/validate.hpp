// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/base/log.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/speed/check_records.hpp>

namespace hpcai::speed {

struct ValidateReport {
    std::string schema = "hpcai500-validate/1";
    std::string device;
    std::string model;
    std::string precision;
    int level = 0;                           // as ValidateRequest::level
    std::int64_t batch_size = 0;             // of the checked operations or step
    std::int64_t configured_batch_size = 0;  // training.batch_size
    std::int64_t image_size = 0;             // height in pixels
    std::int64_t image_width = 0;            // in pixels
    int runs = 0;                            // of each pass, to measure its time
    int compared_runs = 0;                   // of each operation, to compare their bits
    double gradient_tolerance = 0;           // of OperationCheck::gradient_error
    std::vector<OperationCheck> operations;
    std::vector<std::string> unchecked;  // other operations, each with the reason
    // Running statistics, losses and gradients of one step, in the order in which it computes them
    std::vector<TensorCheck> step;
    // Time of a step / sum of the times of its operations alone, as bench measures them
    Quantity overhead = no_value("only level 1 measures it");
    // From the exact 95 % confidence interval of the step's time, without the spread of the sum
    Quantity low_overhead = overhead;
    Quantity high_overhead = overhead;
    double seconds = 0;  // of the whole command
    bool passed = false;
    HPCAI_RECORD(ValidateReport, schema, device, model, precision, level, batch_size,
                 configured_batch_size, image_size, image_width, runs, compared_runs,
                 gradient_tolerance, operations, unchecked, step, overhead, low_overhead,
                 high_overhead, seconds, passed);
};

struct ValidateRequest {
    int level = 0;       // 0: each operation, 1: a whole step
    int runs = 30;       // of each pass or step, to measure its time
    bool quick = false;  // whether to check a smaller batch
};

/// Compares each distinct operation of the configured model's training step, or the whole step,
/// fused as in training, with naive loops in double, on one rank and the configured device and
/// precision. Reduces the batch if the naive loops would take many minutes or a tensor would have
/// 2^24 numbers or more. A step has at least four samples. OperationCheck::failure has an
/// operation's Error. Throws if the device
/// cannot be opened or stops working, and Error(usage) at level 1 for detectors and int8.
ValidateReport run_validate(const config::Config& config, const ValidateRequest& request,
                            Logger& log);

/// Returns the passes of each operation or the worst tensors of a step, the place of the worst
/// error, and a last line "VALIDATE PASSED ..." or "VALIDATE FAILED ..." with the device, the
/// number of unchecked operations and the worst error. Only the last line may exceed kPageWidth.
std::string validate_text(const ValidateReport& report);
std::string validate_json(const ValidateReport& report);

}  // namespace hpcai::speed
