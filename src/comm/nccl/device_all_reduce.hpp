// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>

#include <cuda_runtime_api.h>

#include <hpcai/comm/all_reduce_schedule.hpp>
#include <hpcai/comm/gradient_reducer.hpp>
#include <hpcai/device/device.hpp>

#include "kernels/wire_format.hpp"

#include "nccl_group.hpp"

namespace hpcai::comm {

/// All-reduces over GPUs by AllReduceSchedule, with NCCL messages and kernels that round and add.
/// Sums (except the bits of NaN) and error feedback of int8 equal those of
/// make_point_to_point_reducer. `device` must outlive this object, which must outlive the work that
/// it enqueues. Throws as NcclGroup, Device and all_reduce_topology do.
class DeviceAllReduce {
public:
    /// `rank` is this rank in the group of `size` ranks.
    DeviceAllReduce(const AllReduceOptions& options, int rank, int size, device::Device& device)
        : options_(options),
          rank_(rank),
          device_(device),
          skip_flag_(device.allocate(sizeof(int))) {
        ensure(options.node_of_rank.size() == static_cast<std::size_t>(size),
               "got the nodes of {} ranks, expected {}", options.node_of_rank.size(), size);
        all_reduce_topology(options_, rank);  // throws for wrong options
    }

    /// Call it once for the values of each all-reduce, before the first all-reduce is enqueued.
    void prepare(std::span<float> device_values) {
        ensure(!has_enqueued_, "an all-reduce was prepared after the first all-reduce had started");
        Sum sum{.values = device_values,
                .schedule = make_all_reduce_schedule(options_, rank_, device_values.size())};
        sum.sent = count_sent(sum.schedule, options_.node_of_rank, rank_);
        if (options_.format == WireFormat::int8) {
            sum.residual = device_.allocate(device_values.size_bytes());
        }
        const std::size_t bytes = sum.schedule.wire_bytes;
        if (!wire_ || wire_->bytes() < bytes) {
            wire_.reset();
            wire_ = device_.allocate(bytes);
        }
        sums_.insert_or_assign({device_values.data(), device_values.size()}, std::move(sum));
    }

    /// Enqueues a message to and from every peer and runs all kernels once, so that no step creates
    /// connections or loads kernels. Collective.
    void connect(NcclGroup& nccl, cudaStream_t stream) {
        const std::set<int> peers = find_peers(all_reduce_topology(options_, rank_), rank_);
        const Buffer messages = device_.allocate((peers.size() + 1) * sizeof(float));
        std::vector<WireMessage> sends, receives;
        for (const int peer : peers) {
            sends.push_back({peer, 0, sizeof(float)});
            receives.push_back({peer, (receives.size() + 1) * sizeof(float), sizeof(float)});
        }
        const Buffer values = device_.allocate(2 * kWarmupValues * sizeof(float));
        const Buffer encoded = device_.allocate(wire_bytes(options_.format, kWarmupValues));
        const Buffer flag = device_.allocate(sizeof(int));
        const std::span<float> terms = floats(values.get()).first(kWarmupValues);
        const std::span<float> residual = floats(values.get()).subspan(kWarmupValues);
        auto* const bytes = static_cast<std::byte*>(encoded->data());
        kernels::encode_for_wire(options_.format, terms, residual.data(), bytes, stream);
        kernels::add_from_wire(options_.format, bytes, terms, stream);
        kernels::decode_from_wire(options_.format, bytes, terms, stream);
        kernels::mark_skipped_unless_finite(terms, static_cast<int*>(flag->data()), stream);
        kernels::clear_if_skipped(static_cast<int*>(flag->data()), residual, stream);
        check_cuda(cudaStreamSynchronize(stream), "loading the kernels of all-reduces");
        nccl.connect({sends, receives, static_cast<std::byte*>(messages->data())}, stream);
    }

    /// Enqueues the all-reduce of prepared values on `stream`, or captures it if `stream` is being
    /// captured as a CUDA graph. All calls must use the same stream.
    void enqueue(NcclGroup& nccl, std::span<float> device_values, cudaStream_t stream) {
        const Sum& sum = find_sum(device_values);
        has_enqueued_ = true;
        for (const ScheduleStep& step : sum.schedule.steps) {
            encode(sum, step, stream);
            nccl.enqueue_exchange({step.sends, step.receives, wire()}, stream);
            decode(sum, step, stream);
        }
        if (sum.residual) kernels::mark_skipped_unless_finite(sum.values, skip_flag(), stream);
        const bool is_recorded = is_being_recorded(stream, "starting an all-reduce");
        (is_recorded ? sent_per_recording_ : sent_) += sum.sent;
        has_counted_step_ |= !is_recorded;
    }

    /// Makes end_step() clear the residuals of error feedback.
    void skip_step(cudaStream_t stream) {
        check_cuda(cudaMemsetAsync(skip_flag(), 1, sizeof(int), stream), "skipping a step");
    }
    /// Call it after each step, captured or not, on a stream that waits for the all-reduces.
    void end_step(cudaStream_t stream) {
        if (!std::exchange(has_counted_step_, false)) sent_ += sent_per_recording_;
        if (options_.format != WireFormat::int8) return;
        for (const auto& [values, sum] : sums_) {
            kernels::clear_if_skipped(skip_flag(), floats(sum.residual.get()), stream);
        }
        check_cuda(cudaMemsetAsync(skip_flag(), 0, sizeof(int), stream), "ending a step");
    }

    /// As in GradientReducer, for values that were prepared.
    std::vector<float> residual_of(std::span<float> device_values) const {
        const Sum& sum = find_sum(device_values);
        if (!sum.residual) return {};
        std::vector<float> residual(device_values.size());
        device_.download(std::as_writable_bytes(std::span(residual)), sum.residual->data());
        return residual;
    }
    void set_residual(std::span<float> device_values, std::span<const float> residual) {
        const Sum& sum = find_sum(device_values);
        const std::size_t size = sum.residual ? device_values.size() : 0;
        ensure(size == residual.size(), "got {} residuals, expected {}", residual.size(), size);
        if (sum.residual) device_.upload(sum.residual->data(), std::as_bytes(residual));
    }

    /// Returns the bytes sent in ended steps and by all-reduces since then that were not captured.
    const SentBytes& sent() const { return sent_; }

private:
    using Buffer = std::unique_ptr<device::Memory>;
    struct Sum {
        std::span<float> values;
        AllReduceSchedule schedule;
        Buffer residual;  // of error feedback; null: none
        SentBytes sent;   // by this rank in one all-reduce
    };

    static constexpr std::size_t kWarmupValues = 8;

    static SentBytes count_sent(const AllReduceSchedule& schedule,
                                const std::vector<int>& node_of_rank, int rank) {
        SentBytes sent;
        for (const ScheduleStep& step : schedule.steps) {
            for (const WireMessage& message : step.sends) {
                sent.add_message(message.bytes, node_of_rank[message.rank] != node_of_rank[rank]);
            }
        }
        return sent;
    }

    static std::span<float> floats(device::Memory* memory) {
        if (memory == nullptr) return {};
        return {static_cast<float*>(memory->data()), memory->bytes() / sizeof(float)};
    }

    static std::span<float> part(std::span<float> values, const WirePiece& piece) {
        return values.subspan(piece.values.begin, piece.values.count());
    }

    /// Returns the ranks that may exchange messages with `rank` in a schedule.
    static std::set<int> find_peers(const AllReduceTopology& topology, int rank) {
        std::set<int> peers(topology.inner.begin(), topology.inner.end());
        peers.insert(topology.outer.begin(), topology.outer.end());
        peers.erase(rank);
        return peers;
    }

    const Sum& find_sum(std::span<float> device_values) const {
        const auto found = sums_.find({device_values.data(), device_values.size()});
        ensure(found != sums_.end(), "an all-reduce of {} values was not prepared",
               device_values.size());
        return found->second;
    }
    void encode(const Sum& sum, const ScheduleStep& step, cudaStream_t stream) const {
        for (const WirePiece& piece : step.encode) {
            float* const residual =
                sum.residual ? part(floats(sum.residual.get()), piece).data() : nullptr;
            kernels::encode_for_wire(options_.format, part(sum.values, piece), residual,
                                     wire() + piece.offset, stream);
        }
    }
    void decode(const Sum& sum, const ScheduleStep& step, cudaStream_t stream) const {
        for (const WirePiece& piece : step.add) {
            kernels::add_from_wire(options_.format, wire() + piece.offset, part(sum.values, piece),
                                   stream);
        }
        for (const WirePiece& piece : step.decode) {
            kernels::decode_from_wire(options_.format, wire() + piece.offset,
                                      part(sum.values, piece), stream);
        }
    }
    std::byte* wire() const { return static_cast<std::byte*>(wire_->data()); }
    int* skip_flag() const { return static_cast<int*>(skip_flag_->data()); }

    AllReduceOptions options_;
    int rank_;
    device::Device& device_;
    std::map<std::pair<const float*, std::size_t>, Sum> sums_;
    Buffer wire_;                    // used by every all-reduce
    Buffer skip_flag_;               // int, nonzero: a sum is not finite or skip_step() was called
    bool has_enqueued_ = false;      // all-reduces were enqueued
    bool has_counted_step_ = false;  // sent_ includes this step; false: it may replay a graph
    SentBytes sent_per_recording_;   // bytes sent by one replay of the CUDA graph
    SentBytes sent_;
};

}  // namespace hpcai::comm
