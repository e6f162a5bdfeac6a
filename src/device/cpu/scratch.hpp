// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "context.hpp"

namespace hpcai::device::cpu {

/// A bump allocator that aligns arrays to cache lines. Without memory it only counts bytes, and
/// returns null.
class Scratch {
public:
    explicit Scratch(void* base = nullptr) : base_(static_cast<std::byte*>(base)) {}

    template <typename T>
    T* take(std::integral auto count) {
        std::byte* at = base_ == nullptr ? nullptr : base_ + bytes_;
        bytes_ += align_up(static_cast<std::size_t>(count) * sizeof(T), 64);
        return reinterpret_cast<T*>(at);
    }
    std::size_t bytes() const { return bytes_; }

private:
    std::byte* base_;
    std::size_t bytes_ = 0;
};

/// A kernel whose workspace consists of the arrays that lay_out() takes.
template <typename Operation>
class ScratchKernel : public OperationKernel<Operation, Context> {
public:
    KernelMemory memory() const override { return {.workspace_bytes = bytes_}; }
    void bind(const KernelTensors& tensors) override {
        OperationKernel<Operation, Context>::bind(tensors);
        Scratch scratch(tensors.workspace);
        lay_out(scratch);
    }

protected:
    using OperationKernel<Operation, Context>::OperationKernel;

    /// Must be the last call in a constructor.
    void count_workspace() {
        Scratch counted;
        lay_out(counted);
        bytes_ = counted.bytes();
    }
    virtual void lay_out(Scratch& scratch) = 0;

private:
    std::size_t bytes_ = 0;
};

}  // namespace hpcai::device::cpu
