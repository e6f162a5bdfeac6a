// SPDX-License-Identifier: Apache-2.0
#include "sync_batch_norm_sums.hpp"

#include <algorithm>

#include <hpcai/base/error.hpp>

namespace hpcai::device::cuda {

SyncBatchNormSums::SyncBatchNormSums(SyncBatchNormReducer* sum, std::int64_t ranks,
                                     std::int64_t channels, const Context& context)
    : sum_(sum),
      ranks_(static_cast<int>(ranks)),
      channels_(static_cast<std::size_t>(channels)),
      context_(context) {
    const int summed = sum == nullptr ? 1 : sum->ranks();
    ensure(ranks == 1 || ranks == summed,
           "the statistics span {} ranks, but the reducer sums over {}", ranks, summed);
}

std::size_t SyncBatchNormSums::bytes() const {
    return ranks_ == 1 ? 0 : value_bytes() + 3 * channels_ * sizeof(float);
}

void SyncBatchNormSums::bind(void* memory) {
    if (ranks_ == 1) return;
    values_ = static_cast<double*>(memory);
    coefficients_ = reinterpret_cast<float*>(values_ + 2 * channels_);
    host_ = PinnedBytes(value_bytes() + 2 * channels_ * sizeof(float));
}

void SyncBatchNormSums::sum_values() const {
    download(host_.data(), values_, value_bytes());
    sum_and_upload();
}

void SyncBatchNormSums::sum(const float* first, const float* second) const {
    auto* const parts = reinterpret_cast<float*>(host_.data() + value_bytes());
    download(parts, first, channels_ * sizeof(float));
    download(parts + channels_, second, channels_ * sizeof(float));
    std::copy_n(parts, 2 * channels_, on_host().begin());
    sum_and_upload();
}

std::span<double> SyncBatchNormSums::on_host() const {
    return {reinterpret_cast<double*>(host_.data()), 2 * channels_};
}

void SyncBatchNormSums::download(void* to, const void* from, std::size_t bytes) const {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, context_.stream),
          "reading statistics");
    check(cudaStreamSynchronize(context_.stream), "reading statistics");
}

void SyncBatchNormSums::sum_and_upload() const {
    sum_->sum(on_host());
    check(cudaMemcpyAsync(values_, host_.data(), value_bytes(), cudaMemcpyHostToDevice,
                          context_.stream),
          "writing statistics");
}

}  // namespace hpcai::device::cuda
