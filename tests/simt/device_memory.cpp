// SPDX-License-Identifier: Apache-2.0
#include "device_memory.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

#include <hpcai/base/error.hpp>

namespace hpcai::simt {
namespace {

constexpr std::size_t kAlignment = 512;
constexpr std::size_t kGuard = 512;  // after every block
constexpr int kGarbage = 0xff;
constexpr std::byte kGuardByte{0xa5};

std::size_t rounded_up(std::size_t bytes, std::size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

std::size_t room_of(std::size_t bytes) {
    return rounded_up(bytes, kAlignment) + kGuard;
}

/// Large pages, because changing the access of each page costs time.
constexpr std::size_t kPageBytes = std::size_t{2} << 20;

/// Returns whether [from, from + bytes) is within the last block that begins at or before `from`.
template <typename Blocks, typename SizeOf>
bool within(const Blocks& blocks, const void* from, std::size_t bytes, const SizeOf& size_of) {
    auto* at = static_cast<std::byte*>(const_cast<void*>(from));
    auto block = blocks.upper_bound(at);
    if (block == blocks.begin()) return false;
    --block;
    const auto offset = static_cast<std::size_t>(at - block->first);
    return offset <= size_of(*block) && bytes <= size_of(*block) - offset;
}

}  // namespace

DeviceMemory::DeviceMemory() {
    space_ = mmap(nullptr, kCapacity + kPageBytes, PROT_NONE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ensure(space_ != MAP_FAILED, "no address space to stand in for a GPU's memory");
    const auto first = rounded_up(reinterpret_cast<std::uintptr_t>(space_), kPageBytes);
    base_ = reinterpret_cast<std::byte*>(first);
    madvise(base_, kCapacity, MADV_HUGEPAGE);  // without it, everything works but is slower
}

DeviceMemory::~DeviceMemory() {
    ASAN_UNPOISON_MEMORY_REGION(base_, used_);
    munmap(space_, kCapacity + kPageBytes);
}

void DeviceMemory::protect(int protection) {
    if (used_ > 0) mprotect(base_, used_, protection);
}

DeviceMemory::Access::Access(DeviceMemory& memory) : memory_(memory) {
    if (memory_.accesses_++ == 0) memory_.protect(PROT_READ | PROT_WRITE);
}

DeviceMemory::Access::~Access() {
    if (--memory_.accesses_ == 0) memory_.protect(PROT_NONE);
}

void* DeviceMemory::allocate(std::size_t bytes) {
    std::byte* at = base_;
    for (const auto& [block, taken] : blocks_) {
        if (static_cast<std::size_t>(block - at) >= room_of(bytes)) break;
        at = block + room_of(taken);
    }
    const std::size_t end = static_cast<std::size_t>(at - base_) + room_of(bytes);
    if (end > kCapacity || end < bytes || allocated_ + bytes > capacity_) return nullptr;
    used_ = std::max(used_, rounded_up(end, kPageBytes));
    if (accesses_ > 0) protect(PROT_READ | PROT_WRITE);
    const Access access(*this);
    ASAN_UNPOISON_MEMORY_REGION(at, room_of(bytes));
    std::memset(at, kGarbage, bytes);
    std::memset(at + bytes, std::to_integer<int>(kGuardByte), room_of(bytes) - bytes);
    ASAN_POISON_MEMORY_REGION(at + bytes, room_of(bytes) - bytes);
    blocks_.emplace(at, bytes);
    allocated_ += bytes;
    return at;
}

bool DeviceMemory::free(void* block) {
    const auto found = blocks_.find(static_cast<std::byte*>(block));
    if (found == blocks_.end()) return false;
    const auto [at, bytes] = *found;
    const Access access(*this);
    ASAN_UNPOISON_MEMORY_REGION(at, room_of(bytes));
    const bool whole = std::all_of(at + bytes, at + room_of(bytes),
                                   [](std::byte byte) { return byte == kGuardByte; });
    std::memset(at, kGarbage, room_of(bytes));
    ASAN_POISON_MEMORY_REGION(at, room_of(bytes));
    blocks_.erase(found);
    allocated_ -= bytes;
    shrink();
    ensure(whole, "device memory was written after a block of {} bytes", bytes);
    return true;
}

/// Changing the access costs time for every page.
void DeviceMemory::shrink() {
    std::size_t used = 0;
    if (!blocks_.empty()) {
        const auto& [last, bytes] = *blocks_.rbegin();
        used = rounded_up(static_cast<std::size_t>(last - base_) + room_of(bytes), kPageBytes);
    }
    if (used == used_) return;
    mprotect(base_ + used, used_ - used, PROT_NONE);
    madvise(base_ + used, used_ - used, MADV_DONTNEED);
    used_ = used;
}

bool DeviceMemory::holds(const void* from, std::size_t bytes) const {
    return within(blocks_, from, bytes, [](const auto& block) { return block.second; });
}

bool DeviceMemory::is_address(const void* at) const {
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    const auto base = reinterpret_cast<std::uintptr_t>(base_);
    return address >= base && address < base + kCapacity;
}

void* PinnedMemory::allocate(std::size_t bytes) {
    Block block{nullptr, bytes};
    if (last_freed_.memory != nullptr && last_freed_.bytes == bytes) {
        block = std::move(last_freed_);
        last_freed_ = {};
    } else {
        block.memory = std::make_unique_for_overwrite<std::byte[]>(std::max<std::size_t>(bytes, 1));
    }
    std::byte* at = block.memory.get();
    std::memset(at, kGarbage, bytes);
    blocks_.emplace(at, std::move(block));
    return at;
}

bool PinnedMemory::free(void* block) {
    const auto found = blocks_.find(static_cast<std::byte*>(block));
    if (found == blocks_.end()) return false;
    if (found->second.bytes >= last_freed_.bytes) last_freed_ = std::move(found->second);
    blocks_.erase(found);
    return true;
}

bool PinnedMemory::holds(const void* from, std::size_t bytes) const {
    return within(blocks_, from, bytes, [](const auto& block) { return block.second.bytes; });
}

}  // namespace hpcai::simt
