// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "context.hpp"

namespace hpcai::device::cpu {

/// A parameter in the layout and type that primitives read, kept beside its fp32 master; the
/// master itself where that suits them.
class WorkingCopy {
public:
    WorkingCopy() = default;
    WorkingCopy(const dnnl::memory::desc& master, const dnnl::memory::desc& wanted,
                const Context& context);

    /// Of the place that bind() takes; 0 where the master serves.
    std::size_t bytes() const { return bytes_; }
    /// The address that primitives read.
    void* bind(float* master, void* place);
    /// Called when the master has changed.
    void refresh(const Context& context) const { reorder_.run(context); }

private:
    std::size_t bytes_ = 0;
    Reorder reorder_;
};

/// Brings a parameter's gradient from the layout that primitives write to the master's. Its own
/// loop serves the layout that oneDNN chooses for filters on processors with AVX-512, where
/// oneDNN's reorder is several times slower than memory.
class GradientCopy {
public:
    GradientCopy() = default;
    GradientCopy(const dnnl::memory::desc& written, const dnnl::memory::desc& master,
                 const Context& context);

    /// Of the place that bind() takes; 0 where primitives write the master's gradient itself.
    std::size_t bytes() const { return bytes_; }
    /// The address that primitives write.
    void* bind(void* place, float* master);
    void run(const Context& context) const;

private:
    void transpose_blocks(const Context& context) const;

    std::size_t bytes_ = 0;
    Reorder reorder_;  // where the own loop does not fit
    bool blocked_ = false;
    std::int64_t filters_ = 0, channels_ = 0, taps_ = 0;
    const float* from_ = nullptr;  // (K/16, C/16, R S, 16 channels, 16 filters)
    float* to_ = nullptr;          // (K, R S, C)
};

/// Bytes of a value in layout `desc`, rounded up to whole cache lines.
std::size_t aligned_bytes(const dnnl::memory::desc& desc);

}  // namespace hpcai::device::cpu
