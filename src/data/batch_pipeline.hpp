// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <hpcai/data/batch_source.hpp>
#include <hpcai/data/prefetcher.hpp>
#include <hpcai/data/sample_set.hpp>

namespace hpcai::data {

/// What one row of a batch consists of.
struct BatchRow {
    std::span<std::uint8_t> pixels;
    std::int32_t& label;
    device::PictureView& view;
};

/// The memory of the batches in the ring, and the prefetcher that fills it.
class BatchPipeline {
public:
    struct Sizes {
        int rows;
        int prefetch_batches;
        int threads;
    };
    /// Writes one row.
    using FillRow = std::function<void(std::int64_t batch, std::int64_t row, const BatchRow& to)>;

    BatchPipeline(const SampleSet& samples, const Sizes& sizes, FillRow fill);

    void cancel() { prefetcher_.cancel(); }
    void begin(std::int64_t batches) { prefetcher_.begin(batches, sizes_.rows); }
    std::int64_t batches() const { return prefetcher_.batches(); }
    double wait_seconds() const { return prefetcher_.wait_seconds(); }
    /// The next batch, with `samples` counted as all rows.
    Batch& next() { return slots_[static_cast<std::size_t>(prefetcher_.next())].batch; }

private:
    struct Slot {
        std::vector<std::uint8_t> pixels;
        std::vector<std::int32_t> labels;
        std::vector<device::PictureView> views;
        Batch batch;
    };

    static std::vector<Slot> make_slots(const SampleSet& samples, const Sizes& sizes);

    Sizes sizes_;
    FillRow fill_;
    std::vector<Slot> slots_;
    Prefetcher prefetcher_;  // last: its threads use the slots
};

}  // namespace hpcai::data
