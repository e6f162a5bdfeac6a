// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hpcai/comm/communicator.hpp"

namespace hpcai::comm {

/// Elements [begin, end) of a flat buffer.
struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
};

struct BucketOptions {
    std::size_t bucket_bytes = std::size_t{25}
                               << 20;  // a bucket is closed before it would exceed this
    bool overlap = true;  // start a bucket once its gradients are ready, else all in finish()
};

/// What the sums have cost this rank since the buckets were made.
struct BucketAccounting {
    std::int64_t steps = 0;
    std::int64_t bytes_reduced = 0;  // gradient bytes that entered an all-reduce
    double exposed_seconds = 0;      // in finish(): communication that nothing hid
    double interleaved_seconds = 0;  // in ready() and progress(): spent between kernels
};

/// Sums one flat gradient buffer over the ranks of a group, step after step, in contiguous buckets
/// filled from its end, where backward produces gradients first. The cut depends only on the ranges
/// and options, and buckets start in the same order on every rank whatever the order of ready(), so
/// that sums are the same bits from run to run. In a group of one nothing is done.
class GradientBuckets {
public:
    /// `parameter_ranges` ascend and do not overlap; gaps between them are summed too when inside a
    /// bucket. `gradients` and `group` must live as long as this object. Throws Error(internal) on
    /// ranges that are not so.
    GradientBuckets(Communicator& group, std::span<float> gradients,
                    std::vector<Range> parameter_ranges, const BucketOptions& options);

    /// The gradient of one parameter is final for this step: it must not be written again before
    /// finish(). May start sums; does not wait.
    void ready(std::size_t parameter_index);

    /// Lets sums under way advance. To be called between kernels.
    void progress();

    /// Returns when `gradients` hold the sums of all ranks; then the next step may begin. Every
    /// parameter must have been ready. Throws as Communicator does.
    void finish();

    std::size_t bucket_count() const { return buckets_.size(); }
    const BucketAccounting& accounting() const { return accounting_; }

private:
    struct Bucket {
        Range elements;
        std::size_t parameters = 0;
        std::size_t waiting_for = 0;  // parameters that are not ready in this step
    };

    void start_ready_buckets();

    Communicator& group_;
    std::span<float> gradients_;
    bool overlap_;
    std::vector<Bucket> buckets_;  // in starting order, from the end of the buffer
    std::vector<std::size_t> bucket_of_parameter_;
    std::vector<bool> parameter_ready_;
    std::size_t started_ = 0;  // buckets
    std::vector<std::unique_ptr<Request>> under_way_;
    BucketAccounting accounting_;
};

}  // namespace hpcai::comm
