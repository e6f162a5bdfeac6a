// SPDX-License-Identifier: Apache-2.0
#include "working_copy.hpp"

#include <algorithm>

#include <hpcai/base/rounding.hpp>

namespace hpcai::device::cpu {

using dnnl::memory;

std::size_t aligned_bytes(const memory::desc& desc) {
    return align_up(desc.get_size(), 64);
}

WorkingCopy::WorkingCopy(const memory::desc& master, const memory::desc& wanted,
                         const Context& context)
    : bytes_(wanted == master ? 0 : aligned_bytes(wanted)), reorder_(master, wanted, context) {}

void* WorkingCopy::bind(float* master, void* buffer) {
    if (bytes_ == 0) return master;
    reorder_.set(master, buffer);
    return buffer;
}

ParameterGradient::ParameterGradient(const memory::desc& written, const memory::desc& master,
                                     std::size_t parts, const Context& context)
    : parts_(parts),
      buffers_(written == master ? parts - 1 : parts),
      part_bytes_(aligned_bytes(written)),
      elements_(written.get_size() / sizeof(float)) {
    const memory::dims dims = master.dims();  // (K, C, R, S)
    if (dims.size() == 4) {
        filters_ = dims[0];
        channels_ = dims[1];
        taps_ = dims[2] * dims[3];
        const memory::desc blocks(dims, memory::data_type::f32, memory::format_tag::OIhw16i16o);
        is_blocked_ = filters_ % 16 == 0 && channels_ % 16 == 0 && written == blocks;
    }
    if (!is_blocked_) reorder_ = Reorder(written, master, context);
}

void ParameterGradient::bind(void* buffer, float* master) {
    buffer_ = static_cast<float*>(buffer);
    master_ = master;
    reorder_.set(part(0), master);
}

float* ParameterGradient::part(std::size_t index) const {
    const std::size_t master_parts = parts_ - buffers_;
    if (index < master_parts) return master_;
    return buffer_ + (index - master_parts) * part_bytes_ / sizeof(float);
}

void ParameterGradient::run(const Context& context) const {
    if (parts_ > 1) sum_parts();
    is_blocked_ ? transpose_blocks(context) : reorder_.run(context);
}

void ParameterGradient::sum_parts() const {
    constexpr std::size_t kBlock = 4096;  // stays in the first-level cache between parts
    const std::size_t blocks = ceil_div(elements_, kBlock);
#pragma omp parallel for schedule(static)
    for (std::size_t block = 0; block < blocks; ++block) {
        const std::size_t end = std::min(elements_, (block + 1) * kBlock);
        float* sum = part(0);
        for (std::size_t index = 1; index < parts_; ++index) {
            const float* term = part(index);
            for (std::size_t i = block * kBlock; i < end; ++i) sum[i] += term[i];
        }
    }
}

void ParameterGradient::transpose_blocks(const Context& context) const {
    const float* from = part(0);  // (K/16, C/16, R S, 16 channels, 16 filters)
    const std::int64_t filter_blocks = filters_ / 16, channel_blocks = channels_ / 16;
#pragma omp parallel for collapse(2) schedule(static)
    for (std::int64_t filter = 0; filter < filter_blocks; ++filter) {
        for (std::int64_t channel = 0; channel < channel_blocks; ++channel) {
            for (std::int64_t tap = 0; tap < taps_; ++tap) {
                const std::int64_t block = (filter * channel_blocks + channel) * taps_ + tap;
                context.loops->transpose_16x16(
                    from + block * 256,
                    master_ + (filter * 16 * taps_ + tap) * channels_ + channel * 16,
                    taps_ * channels_);
            }
        }
    }
}

}  // namespace hpcai::device::cpu
