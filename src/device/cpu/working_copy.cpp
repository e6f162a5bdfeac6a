// SPDX-License-Identifier: Apache-2.0
#include "working_copy.hpp"

namespace hpcai::device::cpu {

using dnnl::memory;

std::size_t aligned_bytes(const memory::desc& desc) {
    return (desc.get_size() + 63) / 64 * 64;
}

WorkingCopy::WorkingCopy(const memory::desc& master, const memory::desc& wanted,
                         const Context& context)
    : bytes_(wanted == master ? 0 : aligned_bytes(wanted)), reorder_(master, wanted, context) {}

void* WorkingCopy::bind(float* master, void* place) {
    if (bytes_ == 0) return master;
    reorder_.set(master, place);
    return place;
}

GradientCopy::GradientCopy(const memory::desc& written, const memory::desc& master,
                           const Context& context)
    : bytes_(written == master ? 0 : aligned_bytes(written)) {
    const memory::dims dims = master.dims();  // (K, C, R, S)
    if (dims.size() == 4) {
        filters_ = dims[0];
        channels_ = dims[1];
        taps_ = dims[2] * dims[3];
        const memory::desc blocks(dims, memory::data_type::f32, memory::format_tag::OIhw16i16o);
        blocked_ = bytes_ > 0 && filters_ % 16 == 0 && channels_ % 16 == 0 && written == blocks;
    }
    if (!blocked_) reorder_ = Reorder(written, master, context);
}

void* GradientCopy::bind(void* place, float* master) {
    if (bytes_ == 0) return master;
    reorder_.set(place, master);
    from_ = static_cast<const float*>(place);
    to_ = master;
    return place;
}

void GradientCopy::run(const Context& context) const {
    blocked_ ? transpose_blocks(context) : reorder_.run(context);
}

void GradientCopy::transpose_blocks(const Context& context) const {
    const std::int64_t filter_blocks = filters_ / 16, channel_blocks = channels_ / 16;
#pragma omp parallel for collapse(2) schedule(static)
    for (std::int64_t filter = 0; filter < filter_blocks; ++filter) {
        for (std::int64_t channel = 0; channel < channel_blocks; ++channel) {
            for (std::int64_t tap = 0; tap < taps_; ++tap) {
                const std::int64_t block = (filter * channel_blocks + channel) * taps_ + tap;
                context.loops->transpose_16x16(
                    from_ + block * 256,
                    to_ + (filter * 16 * taps_ + tap) * channels_ + channel * 16,
                    taps_ * channels_);
            }
        }
    }
}

}  // namespace hpcai::device::cpu
