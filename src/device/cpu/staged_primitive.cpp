// SPDX-License-Identifier: Apache-2.0
#include "staged_primitive.hpp"

#include <hpcai/base/rounding.hpp>

#include "working_copy.hpp"

namespace hpcai::device::cpu {

StagedPrimitive::StagedPrimitive(const dnnl::primitive& primitive,
                                 const dnnl::memory::desc& scratchpad, const Context& context)
    : context_(&context), primitive_(primitive, scratchpad, context) {}

void StagedPrimitive::add(int argument, Flow flow, const dnnl::memory::desc& outside,
                          const dnnl::memory::desc& inside) {
    primitive_.add(argument, inside, *context_);
    Staging staging{.flow = flow,
                    .offset = staged_bytes_,
                    .outside_bytes = outside.get_size(),
                    .is_needed = outside != inside};
    if (staging.is_needed) {
        staging.reorder = flow == Flow::in ? Reorder(outside, inside, *context_)
                                           : Reorder(inside, outside, *context_);
        staged_bytes_ += aligned_bytes(inside);
    }
    stagings_.emplace(argument, std::move(staging));
}

std::size_t StagedPrimitive::workspace_bytes() const {
    return staged_bytes_ + align_up(primitive_.scratchpad_bytes(), 64);
}

void StagedPrimitive::bind_workspace(void* workspace) {
    workspace_ = static_cast<std::byte*>(workspace);
    primitive_.set_scratchpad(workspace_ + staged_bytes_);
}

void StagedPrimitive::bind(int argument, void* address) {
    Staging& staging = stagings_.at(argument);
    if (!staging.is_needed) {
        primitive_.set(argument, address);
        return;
    }
    void* place = workspace_ + staging.offset;
    primitive_.set(argument, place);
    if (staging.flow == Flow::in) {
        staging.reorder.set(address, place);
    } else {
        staging.reorder.set(place, address);
    }
}

void StagedPrimitive::run() const {
    for (const auto& [argument, staging] : stagings_) {
        if (staging.flow == Flow::in) staging.reorder.run(*context_);
    }
    primitive_.run(*context_);
    for (const auto& [argument, staging] : stagings_) {
        if (staging.flow == Flow::out) staging.reorder.run(*context_);
    }
}

}  // namespace hpcai::device::cpu
