// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <hpcai/comm/all_reduce_schedule.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/device/device.hpp>

namespace hpcai::comm {

/// Time of a step's sums, by the clock of the device that makes them.
struct SumSeconds {
    double exposed = 0;    // in which other work waited for them
    double under_way = 0;  // from the start of each to its end, and its wait for other ranks
};

/// Bytes of a rank's messages with values of sums, since it began.
struct SentBytes {
    std::int64_t all = 0;
    std::int64_t to_other_nodes = 0;

    void add_message(std::size_t bytes, bool is_to_other_node) {
        all += static_cast<std::int64_t>(bytes);
        if (is_to_other_node) to_other_nodes += static_cast<std::int64_t>(bytes);
    }
    SentBytes& operator+=(const SentBytes& more) {
        all += more.all;
        to_other_nodes += more.to_other_nodes;
        return *this;
    }
};

/// Sums of gradients that lie in device memory, over the ranks of a group. All ranks start the same
/// sums in the same order, and wait for them in that order. One thread uses it. Everything throws
/// as Communicator does; after a throw it is of no more use.
class GradientReducer {
public:
    virtual ~GradientReducer() = default;

    /// Ranks.
    virtual int size() const = 0;

    /// "mpi, torus_2d in int8", "mpi through host memory, all_reduce in fp32", "nccl 2.28.9", "nccl
    /// 2.28.9, torus_2d in int8": for people.
    virtual std::string description() const = 0;
    /// What carries the messages, as the record has it.
    virtual std::string_view backend() const { return "mpi"; }

    /// Gets what sums of these values need. To be called once for the values of each sum, in no
    /// recording and before the first sum of any.
    virtual void prepare(std::span<float> /*device_values*/) {}

    /// Sums `device_values`, in place, after the work enqueued on the device so far; may wait for
    /// that. Work enqueued after the request's wait() comes after the sum; wait() itself may return
    /// before. Until then nothing else touches the values, and test() need not have been called.
    virtual std::unique_ptr<Request> start_sum(std::span<float> device_values) = 0;

    /// Whether start_sum and wait() may be called inside Device::record. Then all ranks run their
    /// recordings together, and every recording goes before this does.
    virtual bool can_be_recorded() const = 0;

    /// Returns once all sums have been made, those of recordings too, and throws when they cannot
    /// be made any more: to be called before the host waits for the device in a way that knows
    /// nothing of other ranks. May wait for all work enqueued on the device.
    virtual void check() = 0;

    /// After a step with sums has been enqueued: may keep the host from being more than a step
    /// ahead of the device; four calls of Device::enqueue_upload a step then wait for no other.
    virtual void end_step() {}

    /// Before end_step(), on all ranks: the step is left out, so nothing of its sums may come into
    /// those of the next. Known without a call where one of the sums is not finite.
    virtual void leave_out_step() {}

    /// After check(): of the recording that ran last. None where the sums are not the device's own
    /// or no recording with sums has been run.
    virtual std::optional<SumSeconds> recorded_seconds() const { return std::nullopt; }

    /// The bytes that this rank sent; none if a library chooses the messages.
    virtual std::optional<SentBytes> sent() const { return std::nullopt; }

    /// Call it on a rank that fails. Ends sums under way without a result, so that the device gets
    /// through what has been enqueued. Returns at once. The reducer is of no more use.
    virtual void abort() noexcept {}
};

/// Sums over `group` by messages of MPI, in the way and the format of `options`; through host
/// memory where `device` is given, whose memory holds the gradients (for ranks that share a GPU,
/// and where NCCL does not serve), else for devices whose memory is the host's and which do their
/// work at once, as the CPU's. With int8, what rounding takes away is added to the same values in
/// the next step (error feedback), unless a sum of the step was not finite: such a step is left
/// out. Sums are the same bits on all ranks and in every run. The same values are summed from the
/// same memory in all steps. `group` and `device` outlive it. Throws as place_in_sum.
std::unique_ptr<GradientReducer> make_exchange_reducer(Communicator& group, device::Device* device,
                                                       const AllReduceOptions& options);

/// The same, all ranks with all others in fp32.
std::unique_ptr<GradientReducer> make_mpi_reducer(Communicator& group);

}  // namespace hpcai::comm
