// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "context.hpp"

namespace hpcai::device::cpu {

/// A parameter in the layout and type that primitives read, next to its fp32 master. It is the
/// master itself where layout and type match.
class WorkingCopy {
public:
    WorkingCopy() = default;
    WorkingCopy(const dnnl::memory::desc& master, const dnnl::memory::desc& wanted,
                const Context& context);

    /// Bytes of the buffer of bind(); 0 if primitives read the master.
    std::size_t bytes() const { return bytes_; }
    /// Returns the address that primitives read.
    void* bind(float* master, void* buffer);
    /// Must be called after the master has changed.
    void refresh(const Context& context) const { reorder_.run(context); }

private:
    std::size_t bytes_ = 0;
    Reorder reorder_;
};

/// Computes the gradient of the master from those that primitives write for their parts of the
/// batch, in their own layout: sums them in order, then converts the sum. A loop of our own
/// converts the layout that oneDNN chooses for filters with AVX-512, because oneDNN's reorder
/// reaches only a fraction of the memory bandwidth.
class ParameterGradient {
public:
    ParameterGradient() = default;
    /// Both descriptions are fp32.
    ParameterGradient(const dnnl::memory::desc& written, const dnnl::memory::desc& master,
                      std::size_t parts, const Context& context);

    /// Bytes of the buffer of bind(); 0 if a single primitive writes the gradient of the master.
    std::size_t bytes() const { return buffers_ * part_bytes_; }
    void bind(void* buffer, float* master);
    /// Returns the address that the primitive of this part writes. Requires bind().
    float* part(std::size_t index) const;
    /// Must be called after all parts are written.
    void run(const Context& context) const;

private:
    void sum_parts() const;
    void transpose_blocks(const Context& context) const;

    std::size_t parts_ = 0;
    std::size_t buffers_ = 0;  // parts_, or one less if the first part is written to master_
    std::size_t part_bytes_ = 0;
    std::size_t elements_ = 0;  // of a part, padding included
    float* buffer_ = nullptr;
    Reorder reorder_;  // used if our own loop does not apply
    bool is_blocked_ = false;
    std::int64_t filters_ = 0, channels_ = 0, taps_ = 0;
    float* master_ = nullptr;  // gradient of the master; (K, R S, C) for filters
};

/// Returns the bytes of a value in layout `desc`, rounded up to complete cache lines.
std::size_t aligned_bytes(const dnnl::memory::desc& desc);

}  // namespace hpcai::device::cpu
