// SPDX-License-Identifier: Apache-2.0
#include "batch_primitive.hpp"

#include <algorithm>
#include <exception>

#include <omp.h>

namespace hpcai::device::cpu {
namespace {

// With 16 sub-batches, ResNet-50's weight gradients lasted up to 1.7 times as long as with one;
// with the fewer sub-batches that kMaxGradientBytes allows, at most 1.1 times.
constexpr std::size_t kMaxSubBatches = 16, kMinSubBatchLimit = 4;
constexpr std::size_t kMaxGradientBytes = std::size_t{16} << 20;  // of all sub-batches together

/// While this object exists, oneDNN makes primitives for one thread.
class SingleThreadScope {
public:
    SingleThreadScope() : previous_threads_(omp_get_max_threads()) { omp_set_num_threads(1); }
    ~SingleThreadScope() { omp_set_num_threads(previous_threads_); }
    SingleThreadScope(const SingleThreadScope&) = delete;
    SingleThreadScope& operator=(const SingleThreadScope&) = delete;

private:
    int previous_threads_;
};

}  // namespace

using dnnl::memory;

std::size_t aligned_bytes(const memory::desc& desc) {
    return align_up(desc.get_size(), 64);
}

PackedParameter::PackedParameter(const memory::desc& master, const memory::desc& wanted,
                                 const Context& context)
    : bytes_(wanted == master ? 0 : aligned_bytes(wanted)), reorder_(master, wanted, context) {}

void* PackedParameter::bind(float* master, void* buffer) {
    if (bytes_ == 0) return master;
    reorder_.set(master, buffer);
    return buffer;
}

ParameterGradient::ParameterGradient(const memory::desc& written, const memory::desc& master,
                                     std::size_t terms, const Context& context)
    : terms_(terms),
      buffered_terms_(written == master ? terms - 1 : terms),
      term_bytes_(aligned_bytes(written)),
      elements_(written.get_size() / sizeof(float)) {
    const memory::dims dims = dims_of(master);  // (K, C, R, S)
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
    reorder_.set(term(0), master);
}

float* ParameterGradient::term(std::size_t index) const {
    const std::size_t master_terms = terms_ - buffered_terms_;
    if (index < master_terms) return master_;
    return buffer_ + (index - master_terms) * term_bytes_ / sizeof(float);
}

void ParameterGradient::run(const Context& context) const {
    if (terms_ > 1) sum_terms();
    is_blocked_ ? transpose_blocks(context) : reorder_.run(context);
}

void ParameterGradient::sum_terms() const {
    constexpr std::size_t kBlock = 4096;  // elements; they stay in the L1 cache between terms
    const std::size_t blocks = ceil_div(elements_, kBlock);
#pragma omp parallel for schedule(static)
    for (std::size_t block = 0; block < blocks; ++block) {
        const std::size_t end = std::min(elements_, (block + 1) * kBlock);
        float* sum = term(0);
        for (std::size_t index = 1; index < terms_; ++index) {
            const float* addend = term(index);
            for (std::size_t i = block * kBlock; i < end; ++i) sum[i] += addend[i];
        }
    }
}

void ParameterGradient::transpose_blocks(const Context& context) const {
    const float* from = term(0);  // (K/16, C/16, R S, 16 channels, 16 filters)
    const std::int64_t filter_blocks = filters_ / 16, channel_blocks = channels_ / 16;
#pragma omp parallel for collapse(2) schedule(static)
    for (std::int64_t k_block = 0; k_block < filter_blocks; ++k_block) {
        for (std::int64_t c_block = 0; c_block < channel_blocks; ++c_block) {
            for (std::int64_t tap = 0; tap < taps_; ++tap) {
                const std::int64_t block = (k_block * channel_blocks + c_block) * taps_ + tap;
                context.loops->transpose_16x16(
                    from + block * 256,
                    master_ + (k_block * 16 * taps_ + tap) * channels_ + c_block * 16,
                    taps_ * channels_);
            }
        }
    }
}

StagedPrimitive::StagedPrimitive(const dnnl::primitive& primitive,
                                 const dnnl::memory::desc& scratchpad, const Context& context)
    : context_(&context), primitive_(primitive, scratchpad, context) {}

void StagedPrimitive::add(int argument, Flow flow, const dnnl::memory::desc& outside,
                          const dnnl::memory::desc& inside) {
    primitive_.add(argument, inside, *context_);
    Staging staging{.flow = flow,
                    .offset = staged_bytes_,
                    .outside_bytes = outside.get_size(),
                    .has_reorder = outside != inside};
    if (staging.has_reorder) {
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
    if (!staging.has_reorder) {
        primitive_.set(argument, address);
        return;
    }
    void* staged = workspace_ + staging.offset;
    primitive_.set(argument, staged);
    if (staging.flow == Flow::in) {
        staging.reorder.set(address, staged);
    } else {
        staging.reorder.set(staged, address);
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

std::vector<std::int64_t> sub_batch_sizes(const Context& context, std::int64_t samples,
                                          std::size_t gradient_bytes) {
    if (!context.is_deterministic) return {samples};
    std::size_t limit = kMaxSubBatches;
    while (limit > kMinSubBatchLimit && limit * gradient_bytes > kMaxGradientBytes) limit /= 2;
    const std::int64_t count = std::min(static_cast<std::int64_t>(limit), samples);
    std::vector<std::int64_t> sizes;
    for (std::int64_t index = 0; index < count; ++index) {
        sizes.push_back((index + 1) * samples / count - index * samples / count);
    }
    return sizes;
}

BatchPrimitive::BatchPrimitive(const Context& context, const std::vector<std::int64_t>& sizes,
                               const MakePrimitive& make_primitive)
    : is_deterministic_(context.is_deterministic) {
    std::optional<SingleThreadScope> single_thread;
    if (is_deterministic_) single_thread.emplace();
    for (const std::int64_t samples : sizes) sub_batches_.push_back(make_primitive(samples));
}

std::size_t BatchPrimitive::workspace_bytes() const {
    std::size_t bytes = 0;
    for (const StagedPrimitive& sub_batch : sub_batches_) bytes += sub_batch.workspace_bytes();
    return bytes;
}

void BatchPrimitive::bind_workspace(void* workspace) {
    auto* next = static_cast<std::byte*>(workspace);
    for (StagedPrimitive& sub_batch : sub_batches_) {
        sub_batch.bind_workspace(next);
        next += sub_batch.workspace_bytes();
    }
}

void BatchPrimitive::bind(int argument, void* address) {
    auto* next = static_cast<std::byte*>(address);
    for (StagedPrimitive& sub_batch : sub_batches_) {
        sub_batch.bind(argument, next);
        next += sub_batch.bytes(argument);
    }
}

void BatchPrimitive::bind_gradient(int argument, const ParameterGradient& gradient) {
    for (std::size_t index = 0; index < sub_batches_.size(); ++index) {
        sub_batches_[index].bind(argument, gradient.term(index));
    }
}

void BatchPrimitive::run_sub_batches() const {
    std::exception_ptr failure;
#pragma omp parallel
    {
        omp_set_num_threads(1);  // inside this region only; oneDNN reads it
#pragma omp for schedule(static)
        for (std::size_t index = 0; index < sub_batches_.size(); ++index) {
            try {
                sub_batches_[index].run();
            } catch (...) {
#pragma omp critical
                failure = std::current_exception();
            }
        }
    }
    if (failure) std::rethrow_exception(failure);
}

}  // namespace hpcai::device::cpu
