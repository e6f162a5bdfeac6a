// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/base/log.hpp>
#include <hpcai/base/median_interval.hpp>
#include <hpcai/device/device.hpp>
#include <hpcai/graph/network.hpp>
#include <hpcai/graph/parameter_store.hpp>
#include <hpcai/records/record_fields.hpp>

namespace hpcai::speed {

/// Makes a graph of one Convolution, Linear or Add. Like a pipeline stage, the graph has no loss:
/// inputs and the output's gradient are set from outside.
graph::Graph make_operation_graph(const ops::Operation& operation, bool needs_input_gradient);

/// A network of one operation on random numbers in device memory.
class OperationBench {
public:
    struct Setup {
        device::Device& device;
        device::Precision precision;
        device::Mode mode = device::Mode::training;
        bool needs_input_gradient = true;
    };

    /// Builds the network of make_operation_graph(). The device must outlive the object. Throws
    /// Error(internal) if the device does not support the operation or has too little memory.
    OperationBench(const ops::Operation& operation, const Setup& setup);

    /// Returns the passes that compute values, without the cast of weights to the compute type.
    std::vector<ops::Pass> passes() const;
    const graph::Graph& graph() const { return network_.graph(); }
    const graph::Node& node() const { return network_.graph().nodes().front(); }
    /// Enqueues one of passes().
    void run(ops::Pass pass) { kernel_->run(pass); }

private:
    void fill_tensors();

    device::Device& device_;
    device::Precision precision_;
    graph::Graph graph_;
    graph::ParameterStore store_;
    graph::Network network_;
    device::Kernel* kernel_ = nullptr;
};

using Work = std::function<void()>;

/// Times pieces of work by the device's clock. With CUDA graphs, captures all pieces as one graph.
class TimedWork {
public:
    /// Each of `pieces` enqueues work. Work that uploads data (`has_upload`) is not captured.
    TimedWork(device::Device& device, std::vector<Work> pieces, bool has_upload = false);
    TimedWork(const TimedWork&) = delete;
    TimedWork& operator=(const TimedWork&) = delete;

    /// Runs the work and returns the seconds of each piece.
    std::vector<double> run();

private:
    void enqueue();

    device::Device& device_;
    std::vector<Work> pieces_;
    std::unique_ptr<device::Timeline> timeline_;
    std::unique_ptr<device::Recording> recording_;  // refers to timeline_, so it is destroyed first
};

/// Returns the FLOPs in one pass; 0 for `prepare`.
double flops_in(const ops::Flops& flops, ops::Pass pass);

/// Returns the median result of `calls` calls of `measure`.
double median_seconds(int calls, const std::function<double()>& measure);

/// Returns the bounds of an interval, which have no value if there were fewer than 6 measurements.
std::pair<Quantity, Quantity> bounds_of(const MedianInterval& interval);

/// Returns how often to run `work`, which has no upload, between two time marks. On a device with
/// CUDA graphs, whose clock is coarse, returns 1 to 20 runs that together take about a
/// millisecond. First runs `work`, because libraries may allocate memory in the first run. Returns
/// 1 on any other device.
int runs_in_a_row(device::Device& device, const Work& work);

/// Counts how long the thread that constructs the object waits for a core (Linux with schedstat).
class CoreWait {
public:
    CoreWait() : begin_(read()) {}
    /// Warns if the same thread has waited for over 5 % of the time in which it wanted to run.
    void log(Logger& log) const;

private:
    struct Times {
        double running = 0, waiting = 0;  // nanoseconds; 0: unknown
    };
    static Times read();

    Times begin_;
};

}  // namespace hpcai::speed
