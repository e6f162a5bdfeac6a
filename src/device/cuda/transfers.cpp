// SPDX-License-Identifier: Apache-2.0
#include "transfers.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hpcai::device::cuda {
namespace {

void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    check(cudaMemcpyAsync(to, from, bytes, kind, stream), "copying");
}

void wait(cudaStream_t stream) {
    check(cudaStreamSynchronize(stream), "waiting for the device");
}

}  // namespace

Transfers::Transfers(cudaStream_t stream)
    : stream_(stream), chunk_(kChunkBytes), small_(kSmallSlots * kSmallBytes) {}

void Transfers::upload(void* to, std::span<const std::byte> from) {
    auto* target = static_cast<std::byte*>(to);
    while (!from.empty()) {
        const auto part = from.first(std::min(from.size(), kChunkBytes));
        std::memcpy(chunk_.data(), part.data(), part.size());
        copy(target, chunk_.data(), part.size(), cudaMemcpyHostToDevice, stream_);
        wait(stream_);
        target += part.size();
        from = from.subspan(part.size());
    }
}

void Transfers::download(std::span<std::byte> to, const void* from) {
    const auto* source = static_cast<const std::byte*>(from);
    while (!to.empty()) {
        const auto part = to.first(std::min(to.size(), kChunkBytes));
        copy(chunk_.data(), source, part.size(), cudaMemcpyDeviceToHost, stream_);
        wait(stream_);
        std::memcpy(part.data(), chunk_.data(), part.size());
        source += part.size();
        to = to.subspan(part.size());
    }
}

void Transfers::enqueue_upload(void* to, std::span<const std::byte> from) {
    if (from.empty()) return;
    from.size() <= kSmallBytes ? enqueue_small(to, from) : enqueue_large(to, from);
}

void Transfers::enqueue_small(void* to, std::span<const std::byte> from) {
    OwnedEvent& arrived = small_arrived_[next_small_];
    std::byte* staged = small_.data() + next_small_ * kSmallBytes;
    next_small_ = (next_small_ + 1) % kSmallSlots;
    arrived.wait();
    std::memcpy(staged, from.data(), from.size());
    copy(to, staged, from.size(), cudaMemcpyHostToDevice, stream_);
    arrived.record(stream_);
}

void Transfers::enqueue_large(void* to, std::span<const std::byte> from) {
    Slot& slot = slots_[next_slot_];
    next_slot_ = (next_slot_ + 1) % slots_.size();
    slot.arrived.wait();
    grow(slot, from.size());
    std::memcpy(slot.host.data(), from.data(), from.size());
    slot.consumed.block(uploads_);
    copy(slot.device.data(), slot.host.data(), from.size(), cudaMemcpyHostToDevice, uploads_);
    slot.arrived.record(uploads_);
    slot.arrived.block(stream_);
    copy(to, slot.device.data(), from.size(), cudaMemcpyDeviceToDevice, stream_);
    slot.consumed.record(stream_);
}

void Transfers::enqueue_fresh_upload(void* to, std::span<const std::byte> from) {
    auto* target = static_cast<std::byte*>(to);
    while (!from.empty()) {
        FreshSlot& slot = fresh_[next_fresh_];
        next_fresh_ = (next_fresh_ + 1) % fresh_.size();
        const auto part = from.first(std::min(from.size(), kFreshBytes));
        slot.arrived.wait();
        std::memcpy(slot.host.data(), part.data(), part.size());
        copy(target, slot.host.data(), part.size(), cudaMemcpyHostToDevice, fresh_uploads_);
        slot.arrived.record(fresh_uploads_);
        slot.arrived.block(stream_);
        target += part.size();
        from = from.subspan(part.size());
    }
}

void Transfers::grow(Slot& slot, std::size_t bytes) {
    if (slot.host.bytes() >= bytes) return;
    slot.consumed.wait();
    PinnedBytes host(bytes);
    DeviceBytes device(bytes);
    slot.host = std::move(host);
    slot.device = std::move(device);
}

}  // namespace hpcai::device::cuda
