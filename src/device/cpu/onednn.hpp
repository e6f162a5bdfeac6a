// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dnnl.hpp>

namespace hpcai::device::cpu {

/// True for oneDNN 2, which plans from a Primitive::desc; oneDNN 3 takes the desc's arguments.
template <typename Primitive>
concept HasDescription = requires {
    typename Primitive::desc;
};

/// Attributes for a scratchpad that the caller provides, so that running allocates nothing.
inline dnnl::primitive_attr caller_scratchpad() {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attributes;
}

/// Plans a forward pass with a scratchpad that the caller provides. `parts` are the arguments of
/// oneDNN 3 between engine and attributes. Throws dnnl::error if oneDNN cannot compute it.
template <typename Forward, typename... Parts>
auto plan_forward_pass(const dnnl::engine& engine, const Parts&... parts) {
    using Plan = typename Forward::primitive_desc;
    if constexpr (HasDescription<Forward>) {
        return Plan(typename Forward::desc(parts...), caller_scratchpad(), engine);
    } else {
        return Plan(engine, parts..., caller_scratchpad());
    }
}

/// As plan_forward_pass, for a backward pass; `forward` is the plan of its forward pass.
template <typename Backward, typename ForwardPlan, typename... Parts>
auto plan_backward_pass(const dnnl::engine& engine, const ForwardPlan& forward,
                        const Parts&... parts) {
    using Plan = typename Backward::primitive_desc;
    if constexpr (HasDescription<Backward>) {
        return Plan(typename Backward::desc(parts...), caller_scratchpad(), engine, forward);
    } else {
        return Plan(engine, parts..., forward, caller_scratchpad());
    }
}

/// Returns the dimensions of a tensor or of filters.
template <typename Desc>
dnnl::memory::dims dims_of(const Desc& desc) {
    if constexpr (requires { desc.get_dims(); }) {
        return desc.get_dims();
    } else {
        return desc.dims();
    }
}

}  // namespace hpcai::device::cpu
