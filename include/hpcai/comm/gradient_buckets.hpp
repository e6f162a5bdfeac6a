// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>

#include <hpcai/base/clock.hpp>
#include <hpcai/comm/gradient_reducer.hpp>

namespace hpcai::comm {

struct BucketOptions {
    std::size_t bucket_bytes = 25 << 20;  // maximum; a bucket of one parameter may be larger
    bool overlap = true;  // starts each all-reduce when its bucket is ready, else all in finish()
};

/// Costs of the all-reduces on this rank since the buckets were made. Times are by the host's
/// clock, except `timed`. If the device runs the all-reduces, the host measures only the time to
/// enqueue them. Steps that replay a captured CUDA graph add no host time.
struct BucketAccounting {
    std::int64_t steps = 0;
    std::int64_t bytes_reduced = 0;         // gradient bytes passed to an all-reduce
    double exposed_seconds = 0;             // in finish(): communication that did not overlap
    double interleaved_seconds = 0;         // in ready() and progress(), which run between kernels
    double overlapped_seconds = 0;          // duration of other work during all-reduces
    std::int64_t timed_steps = 0;           // replayed steps that `timed` counts
    std::optional<AllReduceSeconds> timed;  // sums over timed_steps
};

/// All-reduces one flat gradient buffer in device memory in every step. Buckets are contiguous and
/// filled from the buffer's end, where the backward pass produces gradients first. Their bounds
/// depend only on the ranges and options. All-reduces start in the same order on every rank, in
/// whatever order ready() is called, so sums have the same bits in every run. A group of one rank
/// has no all-reduces.
class GradientBuckets {
public:
    /// `parameter_ranges` ascend, do not overlap and lie in `gradients`, else throws
    /// Error(internal). Gaps between the ranges of a bucket are summed too. `gradients` and
    /// `reducer` must outlive this object. `before_all_reduce` may be null. It is called once for
    /// each bucket and step when the bucket's gradients are ready, before their all-reduce, also in
    /// a group of one rank. It may enqueue work. Its time counts as computation.
    GradientBuckets(GradientReducer& reducer, std::span<float> gradients,
                    std::vector<Range> parameter_ranges, const BucketOptions& options,
                    std::function<void(const Range& elements)> before_all_reduce = {});
    /// During an exception, aborts `reducer`: otherwise, freeing memory would wait for
    /// all-reduces that cannot complete.
    ~GradientBuckets();
    GradientBuckets(const GradientBuckets&) = delete;
    GradientBuckets& operator=(const GradientBuckets&) = delete;

    /// Call it when the work that computes this parameter's gradient has been enqueued. Nothing may
    /// write the gradient again before finish(). May start all-reduces. Throws as GradientReducer
    /// does.
    void ready(std::size_t parameter_index);

    /// Progresses the all-reduces. Call it between kernels.
    void progress();

    /// Completes the all-reduces: work that is enqueued later reads the sums over all ranks in
    /// `gradients`. The next step may begin. ready() must have been called for every parameter.
    /// Throws as GradientReducer does.
    void finish();

    /// Counts a step that replayed a CUDA graph of ready() and finish(). Starts no all-reduces.
    void count_replayed_step();

    /// Call it after the reducer's check(). Adds to `timed`, for each step replayed since the
    /// previous call, the times that the device measured in the last of these steps.
    void read_times();

    /// Called when the host starts an all-reduce and when it observes its completion.
    using Listener = std::function<void(std::size_t bucket, bool is_complete)>;
    void set_listener(Listener listener) { listener_ = std::move(listener); }

    /// The elements of the buckets, in the order of their all-reduces.
    std::vector<Range> ranges() const;
    const BucketAccounting& accounting() const { return accounting_; }

private:
    struct Bucket {
        Range elements;
        std::size_t parameters = 0;
        std::size_t waiting_for = 0;  // parameters not ready yet in this step
    };

    struct AllReduce {
        std::unique_ptr<Request> request;
        bool is_complete = false;  // as observed by the host
    };

    std::span<float> values_of(const Bucket& bucket) const;
    void start_all_reduce(std::size_t bucket);
    void mark_complete(std::size_t bucket);
    void end_overlap();
    void call_before_all_reduce(const Bucket& bucket) {
        if (before_all_reduce_) before_all_reduce_(bucket.elements);
    }
    void start_ready_buckets();
    void count_step();

    GradientReducer& reducer_;
    std::span<float> gradients_;
    bool overlap_;
    std::function<void(const Range& elements)> before_all_reduce_;  // may be null
    std::vector<Bucket> buckets_;  // in the order of their all-reduces, from the buffer's end
    std::vector<std::size_t> bucket_of_parameter_;
    std::vector<bool> parameter_ready_;
    std::vector<AllReduce> all_reduces_;      // started in this step, by bucket
    std::size_t incomplete_ = 0;              // number of all_reduces_ that are not complete
    std::optional<Stopwatch> since_overlap_;  // empty: no overlap is in progress
    double interleaved_before_ = 0;           // interleaved_seconds when the overlap began
    std::int64_t replays_since_read_times_ = 0;
    BucketAccounting accounting_;
    Listener listener_;
    int exceptions_ = std::uncaught_exceptions();
};

}  // namespace hpcai::comm
