// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <hpcai/base/clock.hpp>
#include <hpcai/comm/gradient_reducer.hpp>
#include <hpcai/comm/range.hpp>

namespace hpcai::comm {

struct BucketOptions {
    std::size_t bucket_bytes = std::size_t{25}
                               << 20;  // a bucket is closed before it would exceed this
    bool overlap = true;  // start a bucket once its gradients are ready, else all in finish()
};

/// What the sums have cost this rank since the buckets were made. Seconds are the host's but in
/// `timed`: where the device makes the sums, those of enqueueing them, and none for steps that a
/// recording repeats.
struct BucketAccounting {
    std::int64_t steps = 0;
    std::int64_t bytes_reduced = 0;   // gradient bytes that entered an all-reduce
    double exposed_seconds = 0;       // in finish(): communication that nothing hid
    double interleaved_seconds = 0;   // in ready() and progress(): spent between kernels
    double overlapped_seconds = 0;    // under way between these calls, as far as they have seen
    std::int64_t timed_steps = 0;     // repeated by a recording, and timed by the device
    std::optional<SumSeconds> timed;  // of all these
};

/// Sums one flat gradient buffer in device memory over ranks, step after step, in contiguous
/// buckets filled from its end, where backward produces gradients first. The cut depends only on
/// the ranges and options, and buckets start in the same order on every rank whatever the order of
/// ready(), so that sums are the same bits from run to run. In a group of one nothing is done.
class GradientBuckets {
public:
    /// `parameter_ranges` ascend and do not overlap; gaps between them are summed too when inside a
    /// bucket. `gradients` and `reducer` must live as long as this object. Throws Error(internal)
    /// on ranges that are not so. `complete`, where given, enqueues what the gradients of a bucket
    /// still lack when all its parameters are ready: it is called once for each bucket and step,
    /// before the bucket's sum or in its place, and its time is not the sums'.
    GradientBuckets(GradientReducer& reducer, std::span<float> gradients,
                    std::vector<Range> parameter_ranges, const BucketOptions& options,
                    std::function<void(const Range& elements)> complete = {});
    /// When an exception ends it, `reducer` gives up: whoever frees memory next waits for the
    /// device.
    ~GradientBuckets();
    GradientBuckets(const GradientBuckets&) = delete;
    GradientBuckets& operator=(const GradientBuckets&) = delete;

    /// The work that makes the gradient of one parameter of this step is enqueued: it must not be
    /// written again before finish(). May start sums; throws as GradientReducer does.
    void ready(std::size_t parameter_index);

    /// Lets sums under way advance. To be called between kernels.
    void progress();

    /// Completes the sums. For work that is enqueued after it, `gradients` hold the sums of all
    /// ranks, and the next step may begin. Every parameter must have been ready. Throws as
    /// GradientReducer does.
    void finish();

    /// Counts a step of which a recording, made of ready() and finish(), has been enqueued; starts
    /// no sums itself.
    void repeat_step();

    /// After the reducer's check(): takes the device's times of the step that was repeated last for
    /// those of each step repeated since the last call.
    void read_times();

    /// Told of each sum that the host starts, and again when it has seen its end.
    using Listener = std::function<void(std::size_t bucket, bool is_over)>;
    void set_listener(Listener listener) { listener_ = std::move(listener); }

    /// The elements of the buckets, in the order in which their sums start.
    std::vector<Range> ranges() const;
    const BucketAccounting& accounting() const { return accounting_; }

private:
    struct Bucket {
        Range elements;
        std::size_t parameters = 0;
        std::size_t waiting_for = 0;  // parameters that are not ready in this step
    };

    struct Sum {
        std::unique_ptr<Request> request;
        bool is_over = false;  // as far as has been seen
    };

    std::span<float> values_of(const Bucket& bucket) const;
    void begin_sum(std::size_t bucket);
    void mark_complete(std::size_t bucket);
    void begin_overlap();
    void end_overlap();
    void complete(const Bucket& bucket);
    void start_ready_buckets();
    void count_step();

    GradientReducer& reducer_;
    std::span<float> gradients_;
    bool overlap_;
    std::function<void(const Range& elements)> complete_;  // empty: they lack nothing
    std::vector<Bucket> buckets_;  // in starting order, from the end of the buffer
    std::vector<std::size_t> bucket_of_parameter_;
    std::vector<bool> parameter_ready_;
    std::size_t started_ = 0;     // buckets
    std::vector<Sum> under_way_;  // by bucket
    std::size_t open_ = 0;        // of these, sums that are not over
    bool is_overlapping_ = false;
    Stopwatch since_overlap_;  // while it is
    double interleaved_before_ = 0;
    std::int64_t untimed_repeats_ = 0;
    BucketAccounting accounting_;
    Listener listener_;
    int exceptions_ = std::uncaught_exceptions();
};

}  // namespace hpcai::comm
