// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <hpcai/base/clock.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/device/device.hpp>
#include <hpcai/records/roofline_record.hpp>

namespace hpcai::speed {

/// Measures the same on all ranks at once, within a time that they agree on. What it returns is
/// the same on all ranks, and all its calls are collective.
class RateMeter {
public:
    /// `seconds` from now on are there for all measurements. Both references outlive it.
    RateMeter(device::Device& device, comm::Communicator& everyone, double seconds)
        : device_(device), everyone_(everyone), limit_seconds_(seconds) {}

    device::Device& device() { return device_; }
    comm::Communicator& everyone() { return everyone_; }
    double limit_seconds() const { return limit_seconds_; }
    /// Returns the elapsed time of the slowest rank.
    double elapsed_seconds();
    bool is_over() { return elapsed_seconds() >= limit_seconds_; }
    /// Returns the largest value of all ranks.
    double agree(double value);
    double mean(double value);

    /// Returns the median seconds of `work`, averaged over ranks. Makes 3 to 15 runs, as many as
    /// take about `seconds`, after one that does not count.
    double seconds_of(const std::function<void()>& work, double seconds, bool has_upload = false);

private:
    device::Device& device_;
    comm::Communicator& everyone_;
    double limit_seconds_;
    Stopwatch watch_;
};

/// An operation of which models are made, or a large one of its kind.
struct MeasuredOperation {
    std::string name;
    ops::Operation operation;
    bool of_model = false;
    int nodes = 0;  // of the model that are such
    bool needs_input_gradient = true;
};

/// Returns the convolutions and linear layers of the configured model for `samples` samples, each
/// shape once, those with most FLOPs per byte first.
std::vector<MeasuredOperation> operations_of_model(const config::Config& config, int samples,
                                                   tensor::DType compute);

/// Returns square matrix products, and convolutions of 256 channels, by increasing size.
std::vector<MeasuredOperation> large_matrix_products();
std::vector<MeasuredOperation> large_convolutions();

/// Returns a text such as "32 x 56 x 56 x 64, 256 filters of 1 x 1, stride 1".
std::string shape_text(const ops::Operation& operation);

/// Measures the rates of all passes within about `seconds`. Rates without a measurement have the
/// reason. Large operations that would exceed the time are left out.
std::vector<OperationRate> measure_operations(RateMeter& meter,
                                              const std::vector<MeasuredOperation>& operations,
                                              const device::Precision& precision, double seconds);

}  // namespace hpcai::speed
