// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <hpcai/data/batch_source.hpp>

#include "formula.hpp"

namespace hpcai::parity {

/// Batches `first` to `first` + `batches` - 1 of the formula, again after each restart.
class FixedSource final : public data::BatchSource {
public:
    FixedSource(std::int64_t side, int batches, int first = 0)
        : side_(side), batches_(batches), first_(first) {}

    void restart() { done_ = 0; }
    std::int64_t batches() const override { return batches_; }
    double wait_seconds() const override { return 0; }
    const data::Batch& next() override {
        pixels_ = pictures(first_ + done_, side_);
        labels_ = labels(first_ + done_);
        ++done_;
        batch_.images = {pixels_.data(), {kBatch, side_, side_, 3}, tensor::DType::u8};
        batch_.labels = {labels_.data(), {kBatch}, tensor::DType::s32};
        batch_.samples = kBatch;
        return batch_;
    }

private:
    std::int64_t side_;
    int batches_, first_, done_ = 0;
    std::vector<std::uint8_t> pixels_;
    std::vector<std::int32_t> labels_;
    data::Batch batch_;
};

}  // namespace hpcai::parity
