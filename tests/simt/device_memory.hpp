// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>

/// The memories of the emulated GPU. Bytes that CUDA leaves undefined are 0xff, which is NaN. Host
/// code cannot access device memory, as on a real GPU.
namespace hpcai::simt {

/// Device memory of a few GiB, which only work on streams can access.
class DeviceMemory {
public:
    DeviceMemory();
    ~DeviceMemory();
    DeviceMemory(const DeviceMemory&) = delete;
    DeviceMemory& operator=(const DeviceMemory&) = delete;

    /// Returns a block, 512-byte aligned; null if there is too little memory.
    void* allocate(std::size_t bytes);
    /// Returns false for an invalid address. Throws Error(internal) if bytes after the block were
    /// written.
    bool free(void* block);

    /// Returns whether the bytes are within one block.
    bool holds(const void* from, std::size_t bytes) const;
    /// Returns whether an address is in device memory, allocated or not.
    bool is_address(const void* at) const;
    std::size_t capacity() const { return capacity_; }
    /// Limits the free memory to this many bytes.
    void set_free(std::size_t bytes) {
        capacity_ = allocated_ + std::min(bytes, kCapacity - allocated_);
    }
    std::size_t allocated() const { return allocated_; }

    /// Allows access to device memory during its lifetime.
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
    std::map<std::byte*, std::size_t> blocks_;  // requested bytes
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
    Block last_freed_;  // kept, because large blocks are expensive
};

/// Reserves all free memory of the GPU except this many bytes.
void set_free_memory(std::size_t bytes);

}  // namespace hpcai::simt
