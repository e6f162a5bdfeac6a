// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "context.hpp"

namespace hpcai::device::cpu {

/// A copy of a parameter in the layout and type that primitives read. If the fp32 master already
/// has both, primitives read the master.
class PackedParameter {
public:
    PackedParameter() = default;
    PackedParameter(const dnnl::memory::desc& master, const dnnl::memory::desc& wanted,
                    const Context& context);

    /// Bytes of bind()'s `buffer`; 0 if primitives read the master.
    std::size_t bytes() const { return bytes_; }
    /// Returns the address that primitives read.
    void* bind(float* master, void* buffer);
    /// Must be called after the master has changed.
    void refresh(const Context& context) const { reorder_.run(context); }

private:
    std::size_t bytes_ = 0;
    Reorder reorder_;
};

/// Computes the gradient of the master. Each primitive writes the term of its sub-batch; this class
/// sums the terms in order, then converts the sum to the master's layout. A loop of our own
/// converts blocks of 16 channels x 16 filters, because oneDNN's reorder reaches only a fraction of
/// the memory bandwidth.
class ParameterGradient {
public:
    ParameterGradient() = default;
    /// `written` is the layout of the terms, `master` that of the result; both are fp32.
    ParameterGradient(const dnnl::memory::desc& written, const dnnl::memory::desc& master,
                      std::size_t terms, const Context& context);

    /// Bytes of bind()'s `buffer`; 0 if a single primitive writes the gradient of the master.
    std::size_t bytes() const { return buffered_terms_ * term_bytes_; }
    void bind(void* buffer, float* master);
    /// Returns the address that the primitive of sub-batch `index` writes. Requires bind().
    float* term(std::size_t index) const;
    /// Must be called after all primitives have run.
    void run(const Context& context) const;

private:
    void sum_terms() const;
    void transpose_blocks(const Context& context) const;

    std::size_t terms_ = 0;
    std::size_t buffered_terms_ = 0;  // all, or all but the first if it is written to master_
    std::size_t term_bytes_ = 0;
    std::size_t elements_ = 0;  // of a term, padding included
    float* buffer_ = nullptr;
    Reorder reorder_;  // used if our own loop does not apply
    bool is_blocked_ = false;
    std::int64_t filters_ = 0, channels_ = 0, taps_ = 0;
    float* master_ = nullptr;  // gradient of the master; (K, R S, C) for filters
};

/// Returns the bytes of a value in layout `desc`, rounded up to complete cache lines.
std::size_t aligned_bytes(const dnnl::memory::desc& desc);

/// A oneDNN primitive with reorders: an argument in another layout than that of the primitive is
/// copied to or from a buffer in the workspace.
class StagedPrimitive {
public:
    enum class Flow { in, out };

    StagedPrimitive() = default;
    StagedPrimitive(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad,
                    const Context& context);

    /// Adds an argument (DNNL_ARG_...). `outside` is the layout of the address that bind() sets,
    /// `inside` that of the primitive.
    void add(int argument, Flow flow, const dnnl::memory::desc& outside,
             const dnnl::memory::desc& inside);
    /// Adds an argument that needs no reorder.
    void add(int argument, const dnnl::memory::desc& desc) { add(argument, Flow::in, desc, desc); }
    /// Returns a multiple of the size of a cache line.
    std::size_t workspace_bytes() const;
    /// Returns the bytes of an argument in its layout `outside`.
    std::size_t bytes(int argument) const { return stagings_.at(argument).outside_bytes; }

    /// `workspace` has workspace_bytes().
    void bind_workspace(void* workspace);
    /// Requires bind_workspace().
    void bind(int argument, void* address);
    void run() const;

private:
    struct Staging {
        Flow flow = Flow::in;
        Reorder reorder;
        std::size_t offset = 0;
        std::size_t outside_bytes = 0;
        bool has_reorder = false;
    };

    const Context* context_ = nullptr;
    Primitive primitive_;
    std::unordered_map<int, Staging> stagings_;
    std::size_t staged_bytes_ = 0;
    std::byte* workspace_ = nullptr;
};

/// Returns the number of samples in each sub-batch: one sub-batch or, in a deterministic engine, up
/// to 16 of similar size. Each sub-batch writes `gradient_bytes` of gradients. If 16 gradients
/// exceed 16 MiB, there are at most 8 sub-batches; if 8 gradients exceed 16 MiB, 4.
std::vector<std::int64_t> sub_batch_sizes(const Context& context, std::int64_t samples,
                                          std::size_t gradient_bytes = 0);

/// One pass of a kernel by oneDNN: a primitive for the batch or, in a deterministic engine, one
/// single-threaded primitive for each sub-batch, because oneDNN's order of summation depends on the
/// number of threads. Threads process sub-batches in parallel.
class BatchPrimitive {
public:
    /// Makes the primitive for a number of samples.
    using MakePrimitive = std::function<StagedPrimitive(std::int64_t samples)>;

    BatchPrimitive() = default;
    BatchPrimitive(const Context& context, const std::vector<std::int64_t>& sizes,
                   const MakePrimitive& make_primitive);

    std::size_t workspace_bytes() const;
    /// Must precede the next three functions, which set the address of an argument (DNNL_ARG_...).
    void bind_workspace(void* workspace);
    /// Sets a value whose first axis is the batch; a sub-batch gets the address of its first
    /// sample.
    void bind(int argument, void* address);
    /// Sets an argument that all sub-batches read.
    void bind_parameter(int argument, void* address) {
        for (StagedPrimitive& sub_batch : sub_batches_) sub_batch.bind(argument, address);
    }
    /// Sets the gradient of a parameter; each sub-batch writes its own term.
    void bind_gradient(int argument, const ParameterGradient& gradient);
    /// Throws dnnl::error.
    void run() const { is_deterministic_ ? run_sub_batches() : sub_batches_.front().run(); }

private:
    void run_sub_batches() const;

    bool is_deterministic_ = false;
    std::vector<StagedPrimitive> sub_batches_;
};

}  // namespace hpcai::device::cpu
