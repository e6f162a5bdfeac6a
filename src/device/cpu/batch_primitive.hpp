// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "staged_primitive.hpp"
#include "working_copy.hpp"

namespace hpcai::device::cpu {

/// Returns the samples in each part of a batch: the whole batch or, in a deterministic engine, up
/// to 16 parts of similar size. If each primitive writes a gradient of `gradient_bytes`, the number
/// of parts is reduced to 8 or 4 where 16 or 8 such gradients take over 16 MiB.
std::vector<std::int64_t> batch_parts(const Context& context, std::int64_t samples,
                                      std::size_t gradient_bytes = 0);

/// One pass of a kernel by oneDNN: a primitive for the whole batch or, in a deterministic engine,
/// one for each part of it, planned for a single thread, because the summation order of oneDNN
/// depends on the number of threads. Threads share the parts.
class BatchPrimitive {
public:
    /// Plans the primitive for a number of samples.
    using Plan = std::function<StagedPrimitive(std::int64_t samples)>;

    BatchPrimitive() = default;
    BatchPrimitive(const Context& context, const std::vector<std::int64_t>& parts,
                   const Plan& plan);

    /// The workspace of all parts together.
    std::size_t workspace_bytes() const;
    /// Must precede the functions below, which set the address of an argument (DNNL_ARG_...).
    void bind_workspace(void* workspace);
    /// Sets a value whose first axis is the batch; each part gets the address of its first sample.
    void bind(int argument, void* address);
    /// Sets an argument that every part reads as a whole.
    void bind_parameter(int argument, void* address);
    /// Sets a gradient that every part writes as a whole.
    void bind_gradient(int argument, const ParameterGradient& gradient);
    /// Throws dnnl::error.
    void run() const;

private:
    void run_parts() const;

    bool is_deterministic_ = false;
    std::vector<StagedPrimitive> parts_;
};

}  // namespace hpcai::device::cpu
