// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <hpcai/records/record_fields.hpp>

/// How fast a machine can be, as `hpcai500 roofline` measures it, and what of that a run is judged
/// by. Plain data.
namespace hpcai {

/// One operation in one pass, run by itself over and over.
struct OperationRate {
    std::string name;       // of the first node of the model that is such, or "gemm 2048"
    std::string operation;  // "linear", "convolution"
    std::string precision;  // as training.precision has it
    std::string pass;       // "forward", "weight_gradient", "input_gradient"
    std::string shape;      // for people
    bool of_model = false;
    int nodes = 0;              // of the model that are such
    double flops = 0;           // of one run; a multiplication and an addition are two
    double bytes = 0;           // that it must read and write
    Quantity seconds;           // median of a rank's runs; mean over the ranks
    Quantity flops_per_second;  // flops / seconds, of one rank
    HPCAI_RECORD(OperationRate, name, operation, precision, pass, shape, of_model, nodes, flops,
                 bytes, seconds, flops_per_second);
};

/// A way for bytes, measured with more of them than caches hold.
struct BandwidthRate {
    std::string name;    // "memory", "host to device", "device to host"
    std::string method;  // what was run
    double bytes = 0;    // of one run
    Quantity seconds;    // median; mean over the ranks
    Quantity bytes_per_second;
    HPCAI_RECORD(BandwidthRate, name, method, bytes, seconds, bytes_per_second);
};

/// A sum of gradients over ranks, by what a run sums with.
struct AllReduceRate {
    std::string scope;  // "run", "node" (the ranks of one), "between nodes" (one of each)
    int ranks = 0;
    double bytes = 0;             // payload of one rank
    double seconds = 0;           // median; of the slowest rank
    double bytes_per_second = 0;  // bytes / seconds: algorithm bandwidth
    HPCAI_RECORD(AllReduceRate, scope, ranks, bytes, seconds, bytes_per_second);
};

/// seconds = latency + bytes / bandwidth, through the fewest and the most bytes measured.
struct AllReduceFit {
    std::string scope;
    std::string backend;  // of the sums, for people
    int ranks = 0;
    Quantity latency_seconds;
    Quantity bytes_per_second;
    HPCAI_RECORD(AllReduceFit, scope, backend, ranks, latency_seconds, bytes_per_second);
};

/// Whole training steps with so many samples on each rank.
struct CalibrationPoint {
    int samples = 0;
    double step_seconds = 0;       // median, ranks not summing; the slowest rank's
    Quantity summed_step_seconds;  // the same while they sum gradients
    HPCAI_RECORD(CalibrationPoint, samples, step_seconds, summed_step_seconds);
};

/// Training steps of the configured model on every rank at once, on data in memory.
struct CalibrationRecord {
    std::string model;
    std::string precision;  // in force, as the next
    std::string optimizer;
    int image_size = 0;                          // pixels, the height
    int image_width = 0;                         // pixels
    std::int64_t training_flops_per_sample = 0;  // table3
    std::int64_t gradient_bytes = 0;
    std::string sums;                      // description of what summed; empty: nothing
    std::vector<CalibrationPoint> points;  // by samples, ascending
    std::string reason;                    // why there are none; empty where there are
    HPCAI_RECORD(CalibrationRecord, model, precision, optimizer, image_size, image_width,
                 training_flops_per_sample, gradient_bytes, sums, points, reason);
};

/// What `hpcai500 roofline` leaves behind.
struct RooflineRecord {
    std::string schema = "hpcai500-roofline/1";
    std::string program_version;
    std::string measured_utc;  // ISO 8601
    std::string device;        // of rank 0, for people
    bool is_gpu = false;
    int ranks = 1;  // that measured at the same time
    int nodes = 1;
    int ranks_of_fullest_node = 1;
    int threads = 1;  // of a rank
    int cores = 1;    // of the node of rank 0, that ranks may use
    double measured_seconds = 0;
    std::vector<OperationRate> operations;
    std::vector<BandwidthRate> bandwidths;
    std::vector<AllReduceRate> all_reduce;
    std::vector<AllReduceFit> all_reduce_fits;
    CalibrationRecord calibration;
    HPCAI_RECORD(RooflineRecord, schema, program_version, measured_utc, device, is_gpu, ranks,
                 nodes, ranks_of_fullest_node, threads, cores, measured_seconds, operations,
                 bandwidths, all_reduce, all_reduce_fits, calibration);
};

/// What one rank of a run can do, in the precision in force.
struct CeilingRecord {
    std::string source = "off";  // "measured before training", "off", or the roofline file
    std::string precision;
    Quantity gemm_flops;               // FLOP/s of the fastest large matrix product
    Quantity model_convolution_flops;  // of the fastest of the model's own convolutions
    Quantity ceiling_flops;            // the larger of these
    std::string ceiling;               // which it was, with its pass
    Quantity measuring_seconds;        // before any clock of the run started
    HPCAI_RECORD(CeilingRecord, source, precision, gemm_flops, model_convolution_flops,
                 ceiling_flops, ceiling, measuring_seconds);
};

/// What a run made of it.
struct UtilizationRecord {
    Quantity flops_per_rank;  // FLOP/s, scores.flops / ranks
    Quantity fraction;        // of roofline.ceiling_flops
    HPCAI_RECORD(UtilizationRecord, flops_per_rank, fraction);
};

}  // namespace hpcai
