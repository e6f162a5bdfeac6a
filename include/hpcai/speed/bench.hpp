// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/config/config.hpp>
#include <hpcai/records/roofline_record.hpp>

namespace hpcai::speed {

/// Time of one operation in one pass, inside the step and measured alone.
struct BenchOperation {
    std::string name;
    std::string operation;  // "convolution", ..., "sgd"
    std::string pass;
    double in_step_seconds = 0;  // median over steps that time each operation
    double alone_seconds = 0;    // median of repeated runs of this operation only
    double flops = 0;            // of one run of the pass, by the table3 ledger; 0: none
    double moved_bytes = 0;      // metrics::moved_bytes; 0: unknown
    HPCAI_RECORD(BenchOperation, name, operation, pass, in_step_seconds, alone_seconds, flops,
                 moved_bytes);
};

struct BenchReport {
    std::string schema = "hpcai500-bench/1";
    std::string device;
    std::string model;
    std::string precision;
    std::int64_t batch_size = 0;
    std::int64_t image_size = 0;   // height in pixels
    std::int64_t image_width = 0;  // in pixels
    std::int64_t steps = 0;
    double step_seconds = 0;    // median
    Quantity low_step_seconds;  // exact 95 % confidence interval of the median
    Quantity high_step_seconds;
    double fastest_step_seconds = 0;
    double loss = 0;                 // mean over the steps of the last measurement; may be NaN
    std::int64_t skipped_steps = 0;  // in the last measurement, because gradients were not finite
    double alone_sum_seconds = 0;    // sum of alone_seconds of all operations
    std::int64_t clock_readings_per_step = 0;  // only readings that measure phases
    double measuring_seconds_per_step = 0;     // readings per step x measured seconds per reading
    double images_per_second = 0;              // batch_size / step_seconds
    double flops = 0;                          // FLOPs per second, by the table3 ledger
    std::vector<BenchOperation> operations;
    HPCAI_RECORD(BenchReport, schema, device, model, precision, batch_size, image_size, image_width,
                 steps, step_seconds, low_step_seconds, high_step_seconds, fastest_step_seconds,
                 loss, skipped_steps, alone_sum_seconds, clock_readings_per_step,
                 measuring_seconds_per_step, images_per_second, flops, operations);
};

/// Measures training steps (upload, weight casts, forward, backward, optimizer) of the configured
/// model on one rank, with random data in memory and without communication. After two measurements
/// for warm-up, makes `steps` measurements, each the mean of the steps between two loss reads. Also
/// measures every operation alone. Throws Error(usage) if steps < 1 or > 1000, and the device's
/// errors.
BenchReport run_bench(const config::Config& config, std::int64_t steps);

/// Returns tables: totals, then the time by operation and pass, then the slowest operations.
std::string bench_text(const BenchReport& report);
std::string bench_json(const BenchReport& report);

/// Returns a figure (report::roofline_svg) of the operations' speed over FLOPs per byte, under the
/// ceilings of `roofline`. Throws Error(data) if `roofline` has no rates in the report's precision.
std::string bench_svg(const BenchReport& report, const RooflineRecord& roofline);

}  // namespace hpcai::speed
