// SPDX-License-Identifier: Apache-2.0
#include "context.hpp"

namespace hpcai::device::cpu {

using dnnl::memory;

FilterGradientCopy::FilterGradientCopy(const memory::desc& from, const memory::desc& master,
                                       const Context& context) {
    const memory::dims dims = master.dims();  // (K, C, R, S)
    filters_ = dims[0];
    channels_ = dims[1];
    taps_ = dims[2] * dims[3];
    const memory::desc blocked(dims, memory::data_type::f32, memory::format_tag::OIhw16i16o);
    blocked_ = filters_ % 16 == 0 && channels_ % 16 == 0 && from == blocked && from != master;
    if (!blocked_) reorder_ = Reorder(from, master, context);
}

void FilterGradientCopy::set(void* from, void* to) {
    reorder_.set(from, to);
    from_ = static_cast<const float*>(from);
    to_ = static_cast<float*>(to);
}

void FilterGradientCopy::run(const Context& context) const {
    if (!blocked_) return reorder_.run(context);
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
