// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "owned.hpp"

namespace hpcai::device::cuda {

/// Copies between the host's memory, which may be any, and the device's, through pinned memory.
/// `stream` is where the device's work is enqueued.
class Transfers {
public:
    explicit Transfers(cudaStream_t stream);

    /// As Device has them. Throw Error(internal) when earlier work has failed.
    void upload(void* to, std::span<const std::byte> from);
    void download(std::span<std::byte> to, const void* from);
    void enqueue_upload(void* to, std::span<const std::byte> from);
    void enqueue_fresh_upload(void* to, std::span<const std::byte> from);
    void reserve_uploads(std::size_t bytes);

private:
    static constexpr std::size_t kChunkBytes = std::size_t{8} << 20;
    static constexpr std::size_t kFreshBytes = std::size_t{1} << 20;
    static constexpr std::size_t kSmallBytes = 4096;
    static constexpr std::size_t kSmallSlots = 32;

    /// A copy on its way: over `uploads_` into memory of its own on the device, while the stream
    /// still works on earlier things, and from there by the stream to its place.
    struct Slot {
        PinnedBytes host;
        DeviceBytes device;
        OwnedEvent arrived;   // `host` may be written again
        OwnedEvent consumed;  // `device` may be written again
    };
    /// One on its way to its place, which the stream does not work on.
    struct FreshSlot {
        PinnedBytes host{kFreshBytes};
        OwnedEvent arrived;
    };

    void enqueue_small(void* to, std::span<const std::byte> from);
    void enqueue_large(void* to, std::span<const std::byte> from);
    static void grow(Slot& slot, std::size_t bytes);

    cudaStream_t stream_;
    PinnedBytes chunk_, small_;
    std::array<OwnedEvent, kSmallSlots> small_arrived_;
    std::array<Slot, 2> slots_;
    std::array<FreshSlot, 4> fresh_;
    std::size_t next_small_ = 0, next_slot_ = 0, next_fresh_ = 0;
    // Last, so that they come to rest before the memory goes. The latter waits for no stream.
    OwnedStream uploads_, fresh_uploads_;
};

}  // namespace hpcai::device::cuda
