// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <hpcai/records/record_fields.hpp>

namespace hpcai {

/// Predicted speed of one number of ranks.
struct SweepPoint {
    int ranks = 0;
    Quantity bagging_flops;        // FLOP/s of all base models
    Quantity bagging_efficiency;   // against as many single ranks without communication
    Quantity data_parallel_flops;  // of one model on all ranks
    Quantity data_parallel_efficiency;
    HPCAI_RECORD(SweepPoint, ranks, bagging_flops, bagging_efficiency, data_parallel_flops,
                 data_parallel_efficiency);
};

/// Bagging against one data-parallel model on more and more ranks, each with the same samples a
/// step: the paper's Fig. 5 and Fig. 9, predicted.
struct SweepRecord {
    std::string model;
    std::string source;              // of the times
    int degree = 1;                  // ranks of a base model
    int samples_per_rank = 0;        // in a step
    std::vector<SweepPoint> points;  // by ranks
    std::vector<std::string> assumptions;
    std::string schema = "hpcai500-sweep/1";
    HPCAI_RECORD(SweepRecord, schema, model, source, degree, samples_per_rank, points, assumptions);
};

}  // namespace hpcai
