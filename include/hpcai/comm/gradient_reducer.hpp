// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/comm/all_reduce_schedule.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/device/device.hpp>

namespace hpcai::comm {

/// Time of a step's all-reduces, by the clock of the device that runs them.
struct AllReduceSeconds {
    double exposed = 0;    // time in which other work waited for all-reduces
    double in_flight = 0;  // sum of the all-reduces' durations, with their waits for other ranks
};

/// Bytes of the messages that a rank sends in all-reduces.
struct SentBytes {
    std::int64_t total = 0;
    std::int64_t to_other_nodes = 0;

    void add_message(std::size_t bytes, bool is_to_other_node) {
        total += static_cast<std::int64_t>(bytes);
        if (is_to_other_node) to_other_nodes += static_cast<std::int64_t>(bytes);
    }
    SentBytes& operator+=(const SentBytes& more) {
        total += more.total;
        to_other_nodes += more.to_other_nodes;
        return *this;
    }
};

/// All-reduces gradients in device memory over the ranks of a group. All ranks start the same
/// all-reduces in the same order and wait for them in that order. Not thread-safe. Calls throw as
/// Communicator does; after a throw the reducer cannot be used any more.
class GradientReducer {
public:
    virtual ~GradientReducer() = default;

    virtual int size() const = 0;

    /// Returns the reducer's name in messages: "mpi, torus_2d in int8", "mpi through host memory,
    /// all_reduce in fp32", "nccl 2.28.9" or "nccl 2.28.9, torus_2d in int8".
    virtual std::string description() const = 0;
    /// Returns the transport's name in result files.
    virtual std::string_view backend() const { return "mpi"; }

    /// Allocates the memory for the all-reduce of these values. Call it once for the values of each
    /// all-reduce, before the first all-reduce and not inside Device::record.
    virtual void prepare(std::span<float> /*device_values*/) {}

    /// All-reduces `device_values` in place after the work enqueued on the device so far; may wait
    /// for that work. Only work enqueued after the request's wait() may use the values: it runs
    /// after the all-reduce, although wait() may return earlier. Calling test() is optional.
    virtual std::unique_ptr<Request> start_all_reduce(std::span<float> device_values) = 0;

    /// Whether Device::record can capture start_all_reduce and wait() in a CUDA graph. If so, all
    /// ranks must replay their graphs together and destroy them before the reducer.
    virtual bool can_be_recorded() const = 0;

    /// Waits until all all-reduces are complete, also those in CUDA graphs; throws if they cannot
    /// complete. Call it before the host waits for the device in a way that does not check other
    /// ranks. May wait for all work enqueued on the device.
    virtual void check() = 0;

    /// Call it after a step with all-reduces has been enqueued. May wait until the host is at most
    /// one step ahead of the device. Then the device has free buffers for the next step: 4 calls of
    /// Device::enqueue_upload with more than 4096 bytes and 32 smaller ones do not block.
    virtual void end_step() {}

    /// Call it on all ranks before end_step() if the step's update is skipped: error feedback must
    /// not carry over to the next step. Not needed if one of the sums is not finite.
    virtual void skip_step() {}

    /// Returns the times of the CUDA graph that ran last; call it after check(). Empty if the
    /// device does not run the all-reduces or no graph with all-reduces has run.
    virtual std::optional<AllReduceSeconds> recorded_seconds() const { return std::nullopt; }

    /// Returns the bytes that this rank has sent so far; empty if a library chooses the messages.
    virtual std::optional<SentBytes> sent() const { return std::nullopt; }

    /// Call it between two steps. Returns the rounding error that this rank adds to these values in
    /// the next all-reduce (error feedback); empty if there is none. May wait for the device.
    virtual std::vector<float> residual_of(std::span<float> /*device_values*/) { return {}; }
    /// Call it between two steps. Restores the residual that residual_of returned for these values,
    /// perhaps in an earlier process. Throws Error(internal) for another number of values.
    virtual void set_residual(std::span<float> /*device_values*/,
                              std::span<const float> /*residual*/) {}

    /// Call it on a rank that fails. Aborts the all-reduces in progress, so that the device
    /// completes its enqueued work. Returns at once. The reducer cannot be used any more.
    virtual void abort() noexcept {}
};

/// Makes a reducer over `group` that uses MPI messages, with the algorithm and format of `options`.
/// With `device`, gradients are in device memory and pass through host memory (for ranks that share
/// a GPU, or without NCCL). If `device` is null, gradients must be in host memory and complete when
/// an all-reduce starts, as on the CPU. In int8, each rank adds its rounding error of the previous
/// step to its gradients (error feedback), unless a sum of that step was not finite or skip_step()
/// was called. Sums have the same bits on all ranks and, except with native, in every run. Each
/// all-reduce must use the same memory in every step. `group` and `device` must outlive the
/// reducer. Throws as all_reduce_topology.
std::unique_ptr<GradientReducer> make_point_to_point_reducer(Communicator& group,
                                                             device::Device* device,
                                                             const AllReduceOptions& options);

/// Makes a reducer like make_point_to_point_reducer, with the algorithm `all_reduce` in fp32, for
/// gradients in host memory. It treats all ranks as ranks of one node.
std::unique_ptr<GradientReducer> make_mpi_reducer(Communicator& group);

}  // namespace hpcai::comm
