// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include <hpcai/base/error.hpp>
#include <hpcai/config/reader.hpp>
#include <hpcai/records/roofline_record.hpp>

namespace hpcai::speed {

/// The request of `hpcai500 roofline`.
struct RooflineRequest {
    config::Sources config;      // without files: the defaults with a batch size of 8
    double seconds = 20;         // approximate time of all measurements
    bool one_precision = false;  // whether to measure only the configured precision
    std::string command_line;
};

/// Measures this machine with the operations of the configured model, as one rank of a launch or
/// alone. Starts MPI only in a launch of several ranks. Rank 0 passes the measurements to `use`.
/// Returns the exit code. A launch prints a failure once and returns its code. A single process
/// throws the errors of the configuration, the device and `use`.
ExitCode run_roofline(const RooflineRequest& request,
                      const std::function<void(const RooflineRecord&)>& use);

/// Measures, in this process alone, how many images per second of the class folder data.path are
/// read, decoded by the CPU and by the GPU, and made into batches. Takes about `seconds` seconds.
/// Also measures the training step. Returns a table. Throws the errors of the configuration, the
/// data and the device.
std::string measure_input(const config::Config& config, double seconds);

}  // namespace hpcai::speed
