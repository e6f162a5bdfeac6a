// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <hpcai/records/record_fields.hpp>

/// The peak rates of a machine, as `hpcai500 roofline` measures them, and the ceiling of a run.
namespace hpcai {

/// The rate of one operation in one pass, measured alone.
struct OperationRate {
    std::string name;           // "gemm <side>", "convolution of <samples>", or a graph node's name
    std::string operation;      // "linear", "convolution"
    std::string precision;      // as in training.precision
    std::string pass;           // "forward", "weight_gradient", "input_gradient"
    std::string shape;          // for display
    bool of_model = false;      // false: a large matrix product or convolution, for peak rates
    int nodes = 0;              // graph nodes of the model with this operation
    double flops = 0;           // of one call; a multiply-add counts as two
    double bytes = 0;           // that a call reads and writes at least
    Quantity seconds;           // median of a rank's calls; mean over ranks
    Quantity flops_per_second;  // flops / seconds, of one rank
    HPCAI_RECORD(OperationRate, name, operation, precision, pass, shape, of_model, nodes, flops,
                 bytes, seconds, flops_per_second);
};

/// The bandwidth of one path, measured with more bytes than caches hold.
struct BandwidthRate {
    std::string name;    // "memory", "host to device", "device to host"
    std::string method;  // the measured operation
    double bytes = 0;    // of one call
    Quantity seconds;    // median of a rank's calls; mean over ranks
    Quantity bytes_per_second;
    HPCAI_RECORD(BandwidthRate, name, method, bytes, seconds, bytes_per_second);
};

/// The rate of an all-reduce of gradients with the backend of a run.
struct AllReduceRate {
    std::string scope;  // "run", "node" (the ranks of one node), "between nodes" (one rank of each)
    int ranks = 0;
    double bytes = 0;             // payload of one rank
    double seconds = 0;           // median over calls of the slowest rank's time
    double bytes_per_second = 0;  // bytes / seconds: algorithm bandwidth
    HPCAI_RECORD(AllReduceRate, scope, ranks, bytes, seconds, bytes_per_second);
};

/// The line seconds = latency + bytes / bandwidth through the smallest and the largest all-reduce.
struct AllReduceFit {
    std::string scope;
    std::string backend;  // for display
    int ranks = 0;
    Quantity latency_seconds;
    Quantity bytes_per_second;
    HPCAI_RECORD(AllReduceFit, scope, backend, ranks, latency_seconds, bytes_per_second);
};

/// Whole training steps with `samples` samples on each rank.
struct CalibrationPoint {
    int samples = 0;
    double step_seconds = 0;       // median of the slowest rank's times, without all-reduces
    Quantity summed_step_seconds;  // as step_seconds, with all-reduces that sum the gradients
    HPCAI_RECORD(CalibrationPoint, samples, step_seconds, summed_step_seconds);
};

/// Training steps of the configured model on all ranks at the same time, on data in memory.
struct CalibrationRecord {
    std::string model;
    std::string precision;  // resolved, never "auto"
    std::string optimizer;
    int image_size = 0;                          // pixels, the height
    int image_width = 0;                         // pixels
    std::int64_t training_flops_per_sample = 0;  // table3
    std::int64_t gradient_bytes = 0;
    std::string sums;                      // description of the all-reduce; empty if there is none
    std::vector<CalibrationPoint> points;  // by samples, ascending
    std::string reason;                    // why points are missing
    HPCAI_RECORD(CalibrationRecord, model, precision, optimizer, image_size, image_width,
                 training_flops_per_sample, gradient_bytes, sums, points, reason);
};

/// The result of `hpcai500 roofline`.
struct RooflineRecord {
    std::string schema = "hpcai500-roofline/1";
    std::string program_version;
    std::string measured_utc;  // ISO 8601
    std::string device;        // of rank 0, for display
    bool is_gpu = false;
    int ranks = 1;  // ranks that measured at the same time
    int nodes = 1;
    int ranks_of_fullest_node = 1;
    int threads = 1;  // per rank
    int cores = 1;    // usable cores of the node of rank 0
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

/// The ceiling: the highest FLOP/s of one rank in single operations, in the run's precision.
struct CeilingRecord {
    std::string source = "off";  // "measured before training", "off", or the roofline file
    std::string precision;
    Quantity gemm_flops;               // FLOP/s of the fastest large matrix product
    Quantity model_convolution_flops;  // FLOP/s of the model's fastest convolution
    Quantity ceiling_flops;            // the larger of these two rates
    std::string ceiling;               // operation and pass of ceiling_flops
    Quantity measuring_seconds;        // part of time.startup_seconds
    HPCAI_RECORD(CeilingRecord, source, precision, gemm_flops, model_convolution_flops,
                 ceiling_flops, ceiling, measuring_seconds);
};

/// The utilization of the ceiling by a run.
struct UtilizationRecord {
    Quantity flops_per_rank;  // FLOP/s, scores.flops / ranks
    Quantity fraction;        // of roofline.ceiling_flops
    HPCAI_RECORD(UtilizationRecord, flops_per_rank, fraction);
};

}  // namespace hpcai
