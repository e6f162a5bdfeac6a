// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "owned.hpp"

namespace hpcai::device::cuda {

/// Copies between host memory of any kind and device memory, through pinned memory. `stream` is the
/// stream of the device's work.
class Transfers {
public:
    explicit Transfers(cudaStream_t stream);

    /// These functions implement those of Device. Throw Error(internal) if earlier work has failed.
    void upload(void* to, std::span<const std::byte> from);
    void download(std::span<std::byte> to, const void* from);
    void enqueue_upload(void* to, std::span<const std::byte> from);
    void enqueue_fresh_upload(void* to, std::span<const std::byte> from);
    void reserve_uploads(std::size_t bytes) {
        for (Slot& slot : slots_) grow(slot, bytes);
    }

private:
    static constexpr std::size_t kChunkBytes = std::size_t{8} << 20;
    static constexpr std::size_t kFreshBytes = std::size_t{1} << 20;
    static constexpr std::size_t kSmallBytes = 4096;
    static constexpr std::size_t kSmallSlots = 32;

    /// A pending copy. `uploads_` copies the bytes to a device buffer while `stream_` still
    /// executes earlier work; `stream_` then copies them to their destination.
    struct Slot {
        PinnedBytes host;
        DeviceBytes device;
        OwnedEvent arrived;   // when complete, `host` may be written again
        OwnedEvent consumed;  // when complete, `device` may be written again
    };
    /// A pending copy to a destination that no earlier work on `stream_` uses.
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
    // Declared last, so that they finish before memory is freed. `fresh_uploads_` never waits.
    OwnedStream uploads_, fresh_uploads_;
};

}  // namespace hpcai::device::cuda
