// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "context.hpp"

namespace hpcai::device::cpu {

/// A parameter in the layout and type that primitives read, kept beside its fp32 master; the master
/// itself where that suits them.
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

/// A parameter's gradient between the primitives that write it, each for its part of the batch and
/// in its own layout, and the master's gradient: it sums the parts in their order and brings the
/// sum into the master's layout. Its own loop serves the layout that oneDNN chooses for filters on
/// processors with AVX-512, where oneDNN's reorder is several times slower than memory.
class ParameterGradient {
public:
    ParameterGradient() = default;
    /// Both descriptions are of fp32.
    ParameterGradient(const dnnl::memory::desc& written, const dnnl::memory::desc& master,
                      std::size_t parts, const Context& context);

    /// Of the place that bind() takes; 0 where a primitive writes the master's gradient itself.
    std::size_t bytes() const { return places_ * part_bytes_; }
    void bind(void* place, float* master);
    /// The address that the primitive of this part writes; after bind().
    float* part(std::size_t index) const;
    /// Called when all parts are written.
    void run(const Context& context) const;

private:
    void sum_parts() const;
    void transpose_blocks(const Context& context) const;

    std::size_t parts_ = 0;
    std::size_t places_ = 0;  // one fewer where the first part lies in the master
    std::size_t part_bytes_ = 0;
    std::size_t elements_ = 0;  // of a part, padding included
    float* place_ = nullptr;
    Reorder reorder_;  // where the own loop does not fit
    bool blocked_ = false;
    std::int64_t filters_ = 0, channels_ = 0, taps_ = 0;
    float* master_ = nullptr;  // (K, R S, C)
};

/// Bytes of a value in layout `desc`, rounded up to whole cache lines.
std::size_t aligned_bytes(const dnnl::memory::desc& desc);

}  // namespace hpcai::device::cpu
