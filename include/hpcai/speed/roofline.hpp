// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include <hpcai/base/error.hpp>
#include <hpcai/config/reader.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/records/roofline_record.hpp>

namespace hpcai::speed {

/// The request of `hpcai500 roofline`.
struct RooflineRequest {
    config::Sources config;      // without files: the defaults, with a batch of 8 unless set
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

/// Measures how many images per second this process reads from data.path (an image_folder),
/// decodes on the CPU and on a GPU that has a decoder, and makes into batches. This takes about
/// `seconds` seconds. Also measures the training step. Returns a table. Throws the errors of the
/// configuration, the data and the device.
std::string measure_input(const config::Config& config, double seconds);

/// Returns the ceiling in `precision`: the larger of the measured rates of the fastest large matrix
/// product and the model's fastest convolution. A rate that was not measured has a reason.
CeilingRecord ceiling_from(const std::vector<OperationRate>& rates, const std::string& precision);

/// Finds the ceiling as run.roofline selects: measures for about two seconds on all ranks at once,
/// or reads the roofline file. With "off", the record has a reason instead of rates. Throws
/// Error(data) on all ranks for an invalid or unreadable file. Collective.
CeilingRecord find_flops_ceiling(const context::RunContext& context,
                                 const context::Resources& resources, comm::Communicator& everyone);

}  // namespace hpcai::speed
