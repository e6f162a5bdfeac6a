// SPDX-License-Identifier: Apache-2.0
#include "device_all_reduce.hpp"

#include <set>

#include <hpcai/base/error.hpp>

#include "kernels/wire_format.hpp"

namespace hpcai::comm {

namespace {

constexpr std::size_t kTrialValues = 8;

SentBytes bytes_of(const AllReduceSchedule& schedule, const std::vector<int>& node_of_rank,
                   int rank) {
    SentBytes sent;
    for (const ScheduleStep& step : schedule.steps) {
        for (const WireMessage& one : step.sends) {
            sent.add_message(one.bytes, node_of_rank[one.rank] != node_of_rank[rank]);
        }
    }
    return sent;
}

std::span<float> floats(device::Memory* memory) {
    if (memory == nullptr) return {};
    return {static_cast<float*>(memory->data()), memory->bytes() / sizeof(float)};
}

std::span<float> part(std::span<float> values, const WirePiece& piece) {
    return values.subspan(piece.values.begin, piece.values.count());
}

/// The ranks with which this rank exchanges messages in any schedule. The relation is symmetric.
std::set<int> peers_of(const AllReduceTopology& place, int rank) {
    std::set<int> peers(place.inner.begin(), place.inner.end());
    peers.insert(place.outer.begin(), place.outer.end());
    peers.erase(rank);
    return peers;
}

}  // namespace

DeviceAllReduce::DeviceAllReduce(const AllReduceOptions& options, int rank, int size,
                                 device::Device& device)
    : options_(options), rank_(rank), device_(device), left_out_(device.allocate(sizeof(int))) {
    ensure(options.node_of_rank.size() == static_cast<std::size_t>(size),
           "got the nodes of {} ranks, expected {}", options.node_of_rank.size(), size);
    all_reduce_topology(options_, rank);
}

void DeviceAllReduce::prepare(std::span<float> device_values) {
    ensure(!has_begun_, "an all-reduce was prepared after the first one had started");
    Sum sum{device_values,
            make_all_reduce_schedule(options_, rank_, device_values.size()),
            nullptr,
            {}};
    sum.sent = bytes_of(sum.schedule, options_.node_of_rank, rank_);
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

void DeviceAllReduce::connect(NcclGroup& nccl, cudaStream_t stream) {
    const std::set<int> peers = peers_of(all_reduce_topology(options_, rank_), rank_);
    const Block buffer = device_.allocate((peers.size() + 1) * sizeof(float));
    std::vector<WireMessage> sends, receives;
    for (const int peer : peers) {
        sends.push_back({peer, 0, sizeof(float)});
        receives.push_back({peer, (receives.size() + 1) * sizeof(float), sizeof(float)});
    }
    const Block values = device_.allocate(2 * kTrialValues * sizeof(float));
    const Block trial = device_.allocate(wire_bytes(options_.format, kTrialValues));
    const Block flag = device_.allocate(sizeof(int));
    const std::span<float> terms = floats(values.get()).first(kTrialValues);
    const std::span<float> residual = floats(values.get()).subspan(kTrialValues);
    auto* const bytes = static_cast<std::byte*>(trial->data());
    kernels::encode_for_wire(options_.format, terms, residual.data(), bytes, stream);
    kernels::add_from_wire(options_.format, bytes, terms, stream);
    kernels::decode_from_wire(options_.format, bytes, terms, stream);
    kernels::leave_out_unless_finite(terms, static_cast<int*>(flag->data()), stream);
    kernels::forget_if_left_out(static_cast<int*>(flag->data()), residual, stream);
    check_cuda(cudaStreamSynchronize(stream), "trying the kernels of all-reduces");
    nccl.connect({sends, receives, static_cast<std::byte*>(buffer->data())}, stream);
}

void DeviceAllReduce::enqueue(NcclGroup& nccl, std::span<float> device_values,
                              cudaStream_t stream) {
    const Sum& sum = sum_of(device_values);
    has_begun_ = true;
    for (const ScheduleStep& step : sum.schedule.steps) {
        begin(sum, step, stream);
        nccl.enqueue_exchange({step.sends, step.receives, wire()}, stream);
        end(sum, step, stream);
    }
    if (sum.residual) kernels::leave_out_unless_finite(sum.values, left_out_flag(), stream);
    const bool is_recorded = is_being_recorded(stream, "starting an all-reduce");
    (is_recorded ? of_recording_ : sent_) += sum.sent;
    counts_sums_ |= !is_recorded;
}

const DeviceAllReduce::Sum& DeviceAllReduce::sum_of(std::span<float> device_values) const {
    const auto found = sums_.find({device_values.data(), device_values.size()});
    ensure(found != sums_.end(), "an all-reduce of {} values was not prepared",
           device_values.size());
    return found->second;
}

std::vector<float> DeviceAllReduce::residual_of(std::span<float> device_values) const {
    const Sum& sum = sum_of(device_values);
    if (!sum.residual) return {};
    std::vector<float> residual(device_values.size());
    device_.download(std::as_writable_bytes(std::span(residual)), sum.residual->data());
    return residual;
}

void DeviceAllReduce::set_residual(std::span<float> device_values,
                                   std::span<const float> residual) {
    const Sum& sum = sum_of(device_values);
    const std::size_t size = sum.residual ? device_values.size() : 0;
    ensure(size == residual.size(), "got {} residuals, expected {}", residual.size(), size);
    if (sum.residual) device_.upload(sum.residual->data(), std::as_bytes(residual));
}

void DeviceAllReduce::begin(const Sum& sum, const ScheduleStep& step, cudaStream_t stream) const {
    for (const WirePiece& piece : step.encode) {
        float* const residual =
            sum.residual ? part(floats(sum.residual.get()), piece).data() : nullptr;
        kernels::encode_for_wire(options_.format, part(sum.values, piece), residual,
                                 wire() + piece.offset, stream);
    }
}

void DeviceAllReduce::end(const Sum& sum, const ScheduleStep& step, cudaStream_t stream) const {
    for (const WirePiece& piece : step.add) {
        kernels::add_from_wire(options_.format, wire() + piece.offset, part(sum.values, piece),
                               stream);
    }
    for (const WirePiece& piece : step.decode) {
        kernels::decode_from_wire(options_.format, wire() + piece.offset, part(sum.values, piece),
                                  stream);
    }
}

void DeviceAllReduce::skip_step(cudaStream_t stream) {
    check_cuda(cudaMemsetAsync(left_out_flag(), 1, sizeof(int), stream), "leaving out a step");
}

void DeviceAllReduce::end_step(cudaStream_t stream) {
    if (!std::exchange(counts_sums_, false)) sent_ += of_recording_;
    if (options_.format != WireFormat::int8) return;
    for (const auto& [place, sum] : sums_) {
        kernels::forget_if_left_out(left_out_flag(), floats(sum.residual.get()), stream);
    }
    check_cuda(cudaMemsetAsync(left_out_flag(), 0, sizeof(int), stream), "ending a step");
}

}  // namespace hpcai::comm
