// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/records/roofline_record.hpp>

namespace hpcai {

/// Returns rates of two ranks of one thread each on two cores, with numbers that are easy to
/// divide.
inline RooflineRecord example_roofline() {
    RooflineRecord record;
    record.program_version = "0.0.0";
    record.measured_utc = "2001-02-03T04:05:06Z";
    record.device = "1 thread of a machine";
    record.ranks = record.ranks_of_fullest_node = 2;
    record.cores = 2;
    record.measured_seconds = 12.5;
    const auto rate = [](const char* name, const char* operation, const char* pass, bool of_model,
                         double flops_per_second) {
        return OperationRate{.name = name,
                             .operation = operation,
                             .precision = "fp32",
                             .pass = pass,
                             .shape = "a shape",
                             .of_model = of_model,
                             .nodes = of_model ? 3 : 0,
                             .flops = 1e9,
                             .bytes = 1e7,
                             .seconds = {1e9 / flops_per_second, ""},
                             .flops_per_second = {flops_per_second, ""}};
    };
    record.operations = {rate("gemm 1024", "linear", "forward", false, 80e9),
                         rate("gemm 2048", "linear", "weight_gradient", false, 100e9),
                         rate("layer1.0.conv1", "convolution", "forward", true, 60e9),
                         rate("layer1.0.conv2", "convolution", "input_gradient", true, 90e9)};
    record.bandwidths = {{"memory", "y = a + b", 384e6, {0.04, ""}, {9.6e9, ""}},
                         {"host to device",
                          "none",
                          0,
                          {std::nullopt, "the device's memory is the host's"},
                          {std::nullopt, "the device's memory is the host's"}}};
    record.all_reduce = {{"run", 2, 4096, 1e-4, 4.096e7}, {"run", 2, 1e8, 0.1, 1e9}};
    record.all_reduce_fits = {{"run", "mpi", 2, {1e-4, ""}, {1e9, ""}}};
    record.calibration = {.model = "resnet50_v1.5",
                          .precision = "fp32",
                          .optimizer = "sgd",
                          .image_size = 224,
                          .image_width = 224,
                          .training_flops_per_sample = 24'610'397'184,
                          .gradient_bytes = 100'000'000,
                          .sums = "mpi",
                          .points = {{8, 1.0, {1.05, ""}}, {16, 1.8, {1.85, ""}}},
                          .reason = ""};
    return record;
}

}  // namespace hpcai
