// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "context.hpp"

namespace hpcai::device::cuda {

/// Copies `from` to `to`. Large copies use several threads, because one thread copies about 10
/// GB/s, and steps on large images need more.
inline void copy_on_host(std::byte* to, std::span<const std::byte> from) {
    constexpr std::size_t kPartBytes = std::size_t{16} << 20, kMaxThreads = 8;
    const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
    const std::size_t parts =
        std::clamp<std::size_t>(from.size() / kPartBytes, 1, std::min(cores, kMaxThreads));
    std::vector<std::jthread> helpers;
    for (std::size_t part = 0; part < parts; ++part) {
        const std::size_t begin = from.size() * part / parts,
                          end = from.size() * (part + 1) / parts;
        const auto copy = [=] { std::memcpy(to + begin, from.data() + begin, end - begin); };
        if (part + 1 == parts) {
            copy();
            continue;
        }
        try {
            helpers.emplace_back(copy);
        } catch (const std::system_error&) {  // too many threads
            copy();
        }
    }
}

/// Copies between host memory of any kind and device memory, through pinned memory. `stream` is the
/// stream of the device's work.
class Transfers {
public:
    explicit Transfers(cudaStream_t stream)
        : stream_(stream), chunk_(kChunkBytes), small_(kSmallSlots * kSmallBytes) {}

    /// The public functions implement those of Device; they throw Error(internal) on a failure.
    void upload(void* to, std::span<const std::byte> from) {
        auto* target = static_cast<std::byte*>(to);
        for (std::size_t at = 0; at < from.size(); at += kChunkBytes) {
            const std::size_t bytes = std::min(from.size() - at, kChunkBytes);
            std::memcpy(chunk_.data(), from.data() + at, bytes);
            copy(target + at, chunk_.data(), bytes, cudaMemcpyHostToDevice, stream_);
            wait(stream_);
        }
    }
    void download(std::span<std::byte> to, const void* from) {
        const auto* source = static_cast<const std::byte*>(from);
        for (std::size_t at = 0; at < to.size(); at += kChunkBytes) {
            const std::size_t bytes = std::min(to.size() - at, kChunkBytes);
            copy(chunk_.data(), source + at, bytes, cudaMemcpyDeviceToHost, stream_);
            wait(stream_);
            std::memcpy(to.data() + at, chunk_.data(), bytes);
        }
    }
    void enqueue_upload(void* to, std::span<const std::byte> from) {
        if (from.empty()) return;
        from.size() <= kSmallBytes ? enqueue_small(to, from) : enqueue_large(to, from);
    }
    void enqueue_fresh_upload(void* to, std::span<const std::byte> from) {
        auto* target = static_cast<std::byte*>(to);
        for (std::size_t at = 0; at < from.size(); at += kFreshBytes) {
            FreshSlot& slot = fresh_[next_fresh_];
            next_fresh_ = (next_fresh_ + 1) % fresh_.size();
            const std::size_t bytes = std::min(from.size() - at, kFreshBytes);
            slot.arrived.wait();
            std::memcpy(slot.host.data(), from.data() + at, bytes);
            copy(target + at, slot.host.data(), bytes, cudaMemcpyHostToDevice, fresh_uploads_);
            slot.arrived.record(fresh_uploads_);
            slot.arrived.block(stream_);
        }
    }
    void reserve_uploads(std::size_t bytes) {
        for (Slot& slot : slots_) grow(slot, bytes);
    }

private:
    static constexpr std::size_t kChunkBytes = std::size_t{8} << 20;  // of a copy that waits
    static constexpr std::size_t kFreshBytes = std::size_t{1} << 20;  // of a FreshSlot
    static constexpr std::size_t kSmallBytes = 4096;                  // larger copies use a Slot
    static constexpr std::size_t kSmallSlots = 32;                    // small copies in progress

    /// Buffers of a large pending copy. `uploads_` copies the bytes to a device buffer while
    /// `stream_` still executes earlier work; `stream_` then copies them to their destination.
    struct Slot {
        PinnedBytes host;
        DeviceBytes device;
        OwnedEvent arrived;   // when complete, `host` may be written again
        OwnedEvent consumed;  // when complete, `device` may be written again
    };
    /// The buffer of a pending copy to a destination that no earlier work on `stream_` uses.
    struct FreshSlot {
        PinnedBytes host{kFreshBytes};
        OwnedEvent arrived;
    };

    static void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                     cudaStream_t stream) {
        check(cudaMemcpyAsync(to, from, bytes, kind, stream), "copying");
    }
    static void wait(cudaStream_t stream) {
        check(cudaStreamSynchronize(stream), "waiting for the device");
    }

    void enqueue_small(void* to, std::span<const std::byte> from) {
        OwnedEvent& arrived = small_arrived_[next_small_];
        std::byte* staged = small_.data() + next_small_ * kSmallBytes;
        next_small_ = (next_small_ + 1) % kSmallSlots;
        arrived.wait();
        std::memcpy(staged, from.data(), from.size());
        copy(to, staged, from.size(), cudaMemcpyHostToDevice, stream_);
        arrived.record(stream_);
    }
    void enqueue_large(void* to, std::span<const std::byte> from) {
        Slot& slot = slots_[next_slot_];
        next_slot_ = (next_slot_ + 1) % slots_.size();
        slot.arrived.wait();
        grow(slot, from.size());
        copy_on_host(slot.host.data(), from);
        slot.consumed.block(uploads_);
        copy(slot.device.data(), slot.host.data(), from.size(), cudaMemcpyHostToDevice, uploads_);
        slot.arrived.record(uploads_);
        slot.arrived.block(stream_);
        copy(to, slot.device.data(), from.size(), cudaMemcpyDeviceToDevice, stream_);
        slot.consumed.record(stream_);
    }
    static void grow(Slot& slot, std::size_t bytes) {
        if (slot.host.bytes() >= bytes) return;
        slot.consumed.wait();
        PinnedBytes host(bytes);
        DeviceBytes device(bytes);
        slot.host = std::move(host);
        slot.device = std::move(device);
    }

    cudaStream_t stream_;
    PinnedBytes chunk_, small_;
    std::array<OwnedEvent, kSmallSlots> small_arrived_;
    std::array<Slot, 2> slots_;
    std::array<FreshSlot, 4> fresh_;
    std::size_t next_small_ = 0, next_slot_ = 0, next_fresh_ = 0;
    // Declared last, so that copies on these streams finish before the buffers are freed.
    // `fresh_uploads_` never waits for other streams.
    OwnedStream uploads_, fresh_uploads_;
};

}  // namespace hpcai::device::cuda
