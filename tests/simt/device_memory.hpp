// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>

/// The memories of the GPU that the CPU stands in for. What CUDA leaves undefined is 0xff, which
/// is NaN; the host's own code cannot touch device memory, as where there is a GPU.
namespace hpcai::simt {

/// Device memory of a few GiB, which only work on streams can read and write.
class DeviceMemory {
public:
    DeviceMemory();
    ~DeviceMemory();
    DeviceMemory(const DeviceMemory&) = delete;
    DeviceMemory& operator=(const DeviceMemory&) = delete;

    /// A block at a multiple of 512 bytes, or null when there is no room.
    void* allocate(std::size_t bytes);
    /// False for what is no block. Throws Error(internal) when something was written after it.
    bool free(void* block);

    /// Whether the bytes are within one block.
    bool holds(const void* from, std::size_t bytes) const;
    /// Whether an address is of device memory, allocated or not.
    bool is_address(const void* at) const;
    std::size_t capacity() const { return capacity_; }
    /// So much, if there is, for further blocks.
    void set_free(std::size_t bytes) {
        capacity_ = allocated_ + std::min(bytes, kCapacity - allocated_);
    }
    std::size_t allocated() const { return allocated_; }

    /// While one exists, device memory is open.
    class Access {
    public:
        explicit Access(DeviceMemory& memory);
        ~Access();
        Access(const Access&) = delete;
        Access& operator=(const Access&) = delete;

    private:
        DeviceMemory& memory_;
    };

private:
    static constexpr std::size_t kCapacity = std::size_t{4} << 30;
    void protect(int protection);
    void shrink();

    void* space_ = nullptr;
    std::byte* base_ = nullptr;
    std::size_t used_ = 0;  // bytes from the base to the end of the last block, in whole pages
    std::size_t allocated_ = 0, capacity_ = kCapacity;
    int accesses_ = 0;
    std::map<std::byte*, std::size_t> blocks_;  // bytes asked for
};

/// Pinned memory of the host.
class PinnedMemory {
public:
    void* allocate(std::size_t bytes);
    bool free(void* block);
    bool holds(const void* from, std::size_t bytes) const;

private:
    struct Block {
        std::unique_ptr<std::byte[]> memory;
        std::size_t bytes = 0;
    };
    std::map<std::byte*, Block> blocks_;
    Block last_freed_;  // large ones are costly to make
};

/// Takes all of the GPU's memory away but what is allocated and, if there is, so much more.
void set_free_memory(std::size_t bytes);

}  // namespace hpcai::simt
