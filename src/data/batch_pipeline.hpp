// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <hpcai/data/batch_source.hpp>
#include <hpcai/data/sample_set.hpp>

#include "prefetcher.hpp"

namespace hpcai::data {

/// What one row of a batch consists of, to be written.
struct BatchRow {
    SampleView sample;
    std::int32_t& label;
    std::int32_t& key;
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
    using FillRow = std::function<void(std::int64_t batch, std::int64_t row, const BatchRow& out)>;

    BatchPipeline(const SampleSet& samples, const Sizes& sizes, FillRow fill);

    void cancel() { prefetcher_.cancel(); }
    void begin(std::int64_t batches, std::int64_t first = 0) {
        prefetcher_.begin(batches, sizes_.rows, first);
    }
    std::int64_t batches() const { return prefetcher_.batches(); }
    double wait_seconds() const { return prefetcher_.wait_seconds(); }
    /// The next batch, with `samples` counted as all rows.
    Batch& next() { return slots_[prefetcher_.next()].batch; }

private:
    struct alignas(64) CacheLine {
        std::byte bytes[64];
    };
    struct Slot {
        std::vector<CacheLine> pixels;
        std::vector<std::int32_t> labels;
        std::vector<std::int32_t> keys;
        std::vector<float> boxes;
        std::vector<device::PictureView> views;
        Batch batch;

        BatchRow row(std::int64_t index, const SampleFormat& format);
    };

    static std::vector<Slot> make_slots(const SampleFormat& format, const Sizes& sizes);

    const SampleFormat format_;
    Sizes sizes_;
    FillRow fill_;
    std::vector<Slot> slots_;
    Prefetcher prefetcher_;  // last: its threads use the slots
};

}  // namespace hpcai::data
