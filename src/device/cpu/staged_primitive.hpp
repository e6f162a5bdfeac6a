// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "context.hpp"

namespace hpcai::device::cpu {

/// A oneDNN primitive with the copies around it: an argument whose outer layout differs from the
/// layout of the primitive is copied to or from a place in the workspace.
class StagedPrimitive {
public:
    enum class Flow { in, out };

    StagedPrimitive() = default;
    StagedPrimitive(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad,
                    const Context& context);

    /// Adds an argument (DNNL_ARG_...) with its layouts outside and inside the primitive.
    void add(int argument, Flow flow, const dnnl::memory::desc& outside,
             const dnnl::memory::desc& inside);
    /// Adds an argument with the same layout on both sides.
    void add(int argument, const dnnl::memory::desc& desc) { add(argument, Flow::in, desc, desc); }
    /// A multiple of a cache line.
    std::size_t workspace_bytes() const;
    /// Bytes of an argument outside the primitive.
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
        bool is_needed = false;
    };

    const Context* context_ = nullptr;
    Primitive primitive_;
    std::unordered_map<int, Staging> stagings_;
    std::size_t staged_bytes_ = 0;
    std::byte* workspace_ = nullptr;
};

}  // namespace hpcai::device::cpu
