// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/base/clock.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/comm/gradient_reducer.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/device/device.hpp>
#include <hpcai/records/roofline_record.hpp>

namespace hpcai::speed {

/// Measures on all ranks at once, within one time limit. All functions except the three getters are
/// collective and return the same values on all ranks.
class RateMeter {
public:
    /// The time limit is `seconds` from now. `device` and `everyone` must outlive this object.
    RateMeter(device::Device& device, comm::Communicator& everyone, double seconds)
        : device_(device), everyone_(everyone), seconds_(seconds), limit_seconds_(seconds) {}

    device::Device& device() { return device_; }
    comm::Communicator& everyone() { return everyone_; }
    double limit_seconds() const { return limit_seconds_; }
    /// Returns the elapsed time of the slowest rank.
    double elapsed_seconds() { return max_over_ranks(watch_.seconds()); }
    bool is_time_over() { return elapsed_seconds() >= limit_seconds_; }
    /// Postpones the time limit if less than `seconds` are left. Returns the seconds left.
    double ensure_left(double seconds) {
        const double elapsed = elapsed_seconds();
        limit_seconds_ = std::max(limit_seconds_, elapsed + seconds);
        return limit_seconds_ - elapsed;
    }
    /// Calls `measure` for parts 0 to `parts` - 1, each with an equal share of the seconds that are
    /// left before the limit of the constructor. Omits the parts for which no time is left.
    void share_left(std::size_t parts, const std::function<void(std::size_t, double)>& measure);
    double max_over_ranks(double value);
    double mean_over_ranks(double value);

    /// Times `work` 3 to 15 times in about `seconds`, after a warm-up. If `work` is short, each
    /// timing spans several runs. Returns the mean over ranks of a rank's median seconds per run.
    double measure(const std::function<void()>& work, double seconds, bool has_upload = false);

private:
    device::Device& device_;
    comm::Communicator& everyone_;
    const double seconds_;  // the limit of the constructor
    double limit_seconds_;
    Stopwatch watch_;
};

/// An operation to measure: one of the configured model, or a large matrix product or convolution.
struct MeasuredOperation {
    std::string name;
    ops::Operation operation;
    bool is_of_model = false;
    int nodes = 0;  // number of graph nodes of the model with this operation
    bool needs_input_gradient = true;
};

/// Returns the convolutions and linear layers of the configured model for `samples` samples, each
/// shape once, by decreasing FLOPs per byte.
std::vector<MeasuredOperation> operations_of_model(const config::Config& config, int samples,
                                                   tensor::DType compute);

/// Two lists by increasing size: square matrix products, and convolutions of 256 channels.
std::vector<MeasuredOperation> large_matrix_products();
std::vector<MeasuredOperation> large_convolutions();

/// Returns a text such as "32 x 56 x 56 x 64, 256 filters of 1 x 1, stride 1".
std::string shape_text(const ops::Operation& operation);

/// Returns whether `shape`, a shape_text(), is of a convolution whose kernel is over half as wide
/// as the smaller side of its input. Many of its multiplications then have an operand in the
/// padding. Libraries skip these multiplications, but the FLOPs count them.
bool is_mostly_padded(const std::string& shape);

/// Measures the rates of all passes of `operations` within about `seconds`. If no time is left, the
/// first operation and those of the model have a reason instead of a rate; others are omitted.
std::vector<OperationRate> measure_operations(RateMeter& meter,
                                              const std::vector<MeasuredOperation>& operations,
                                              const device::Precision& precision, double seconds);

/// The ranks of an all-reduce.
struct AllReduceRanks {
    std::string scope;  // as in AllReduceRate
    comm::Communicator& group;
    comm::GradientReducer& reducer;
};

/// Measures all-reduces of 4 KiB to 64 MiB per rank within about `seconds` and returns the times of
/// the slowest ranks. Collective over all ranks of `meter`, each with its own group.
std::vector<AllReduceRate> measure_all_reduce(RateMeter& meter, const AllReduceRanks& ranks,
                                              double seconds);

/// Fits a line through the times of the smallest and the largest size in `rates`, which are sorted
/// by size. The fit has no values for fewer than two sizes, or if the time does not grow.
AllReduceFit fit(const std::vector<AllReduceRate>& rates, const std::string& backend);

struct CalibrationSetup {
    const config::Config& config;
    device::Precision precision;
    comm::GradientReducer* reducer = nullptr;  // over all ranks; null for one rank
    int samples = 1;                           // per rank and step
};

/// Measures whole training steps of the configured model on all ranks at once: with a quarter of
/// the samples of a rank, then with half and with all of them. Each of these takes about a third of
/// `seconds`. Omits a number of samples whose steps would end after three quarters of the meter's
/// time, and names it in the record's reason. With a reducer, also measures steps with all-reduces.
/// Collective.
CalibrationRecord calibrate(RateMeter& meter, const CalibrationSetup& setup, double seconds);

}  // namespace hpcai::speed
