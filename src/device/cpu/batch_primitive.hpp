// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "staged_primitive.hpp"
#include "working_copy.hpp"

namespace hpcai::device::cpu {

/// Samples of each of the parts in which oneDNN works on a batch: the whole batch or, in a
/// deterministic engine, up to 16 parts of about the same size. Where each primitive writes a
/// gradient of `gradient_bytes` for itself, no more than 8 or 4 if 16 or 8 of them take over 16
/// MiB.
std::vector<std::int64_t> batch_parts(const Context& context, std::int64_t samples,
                                      std::size_t gradient_bytes = 0);

/// One pass of a kernel by oneDNN: a primitive for the whole batch or, in a deterministic engine,
/// one for each part of it, planned for a single thread, because the order in which oneDNN sums
/// depends on the number of threads. Threads share the parts.
class BatchPrimitive {
public:
    /// The primitive for so many samples.
    using Plan = std::function<StagedPrimitive(std::int64_t samples)>;

    BatchPrimitive() = default;
    BatchPrimitive(const Context& context, const std::vector<std::int64_t>& parts,
                   const Plan& plan);

    /// What all parts together need.
    std::size_t workspace_bytes() const;
    /// Comes before the functions below, which say where an argument lies (DNNL_ARG_...).
    void bind_workspace(void* workspace);
    /// A value of the batch, sample after sample.
    void bind(int argument, void* address);
    /// What every part reads as a whole.
    void bind_parameter(int argument, void* address);
    /// What every part writes as a whole.
    void bind_gradient(int argument, const ParameterGradient& gradient);
    /// Throws dnnl::error.
    void run() const;

private:
    void run_parts() const;

    bool is_deterministic_ = false;
    std::vector<StagedPrimitive> parts_;
};

}  // namespace hpcai::device::cpu
